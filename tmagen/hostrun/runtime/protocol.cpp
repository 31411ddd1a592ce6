// SPDX-License-Identifier: Apache-2.0
#include "protocol.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "state.hpp"

namespace standin {
namespace {

std::FILE* sink = nullptr;

}  // namespace

void answer_into(std::FILE* file) { sink = file; }

void answer(const std::string& line) {
  if (sink == nullptr) {
    const char* path = std::getenv("TMAGEN_HOSTRUN_RECORD");
    sink = path != nullptr ? std::fopen(path, "a") : stderr;
    if (sink == nullptr) {
      std::fprintf(stderr, "tmagen stand-in runtime: cannot write %s\n", path);
      std::_Exit(4);
    }
  }
  std::fprintf(sink, "%s\n", line.c_str());
  std::fflush(sink);
}

void await_run() {
  const char* path = std::getenv("TMAGEN_HOSTRUN_REPLY");
  if (path == nullptr) return;
  static std::FILE* const replies = std::fopen(path, "r");
  if (replies == nullptr) {
    std::fprintf(stderr, "tmagen stand-in runtime: cannot read %s\n", path);
    std::_Exit(4);
  }
  char reply[8] = "";
  if (std::fgets(reply, sizeof reply, replies) != nullptr && std::strcmp(reply, "go\n") == 0) return;
  std::fflush(nullptr);  // what the program has printed so far is part of the story
  std::_Exit(5);
}

bool configure(State& state, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  words >> what;
  if (what == "device") {
    Device device;
    words >> device.major >> device.minor >> device.sm_count >> device.smem_optin_bytes;
    if (words.fail()) return false;
    state.devices.push_back(device);
    return true;
  }
  if (what != "kernel") return false;
  std::string name;
  Description code;
  words >> name >> code.arch >> code.max_threads >> code.static_smem_bytes >> code.cluster.x >> code.cluster.y >>
      code.cluster.z;
  if (words.fail()) return false;
  Parameter parameter;
  for (char colon = ':'; words >> parameter.offset >> colon >> parameter.size && colon == ':';)
    code.parameters.push_back(parameter);
  state.descriptions[name] = code;
  return words.eof();
}

void configure_from_environment(State& state) {
  const char* path = std::getenv("TMAGEN_HOSTRUN_CONFIG");
  if (path == nullptr) return;
  state.devices.clear();
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line))
    if (!configure(state, line)) {
      std::fprintf(stderr, "tmagen stand-in runtime: %s: cannot read \"%s\"\n", path, line.c_str());
      std::_Exit(4);
    }
  if (state.devices.empty()) state.devices.push_back(Device{});
}

}  // namespace standin
