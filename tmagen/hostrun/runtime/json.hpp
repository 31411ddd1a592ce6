// SPDX-License-Identifier: Apache-2.0
// Just enough JSON to write the record.
#ifndef TMAGEN_HOSTRUN_JSON_HPP
#define TMAGEN_HOSTRUN_JSON_HPP

#include <cstdint>
#include <cstdio>
#include <string>

namespace standin {

inline std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <typename Sequence>
std::string array(const Sequence& values, std::size_t count) {
  std::string out = "[";
  for (std::size_t i = 0; i < count; ++i) out += (i != 0 ? "," : "") + std::to_string(values[i]);
  return out + "]";
}

inline std::string hex(const std::string& bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

class Object {
 public:
  Object& raw(const char* key, const std::string& json) {
    body_ += (body_.empty() ? "" : ",") + quote(key) + ":" + json;
    return *this;
  }
  Object& text(const char* key, const std::string& value) { return raw(key, quote(value)); }
  template <typename Number>
  Object& number(const char* key, Number value) {
    return raw(key, std::to_string(value));
  }
  std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

}  // namespace standin

#endif
