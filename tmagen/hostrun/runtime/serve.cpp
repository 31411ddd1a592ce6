// SPDX-License-Identifier: Apache-2.0
// Answers requests to call launch(), one line in, one line of JSON out.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "json.hpp"
#include "protocol.hpp"
#include "state.hpp"

namespace standin {

void answer_into(std::FILE* file);

namespace {

// launch DEVICE STREAM THREADS CAPTURE A B D M N K LDA LDB LDD
struct Request {
  int device = 0;
  int stream = 0;   // 0: the null stream, 1: a new non-blocking one, 2: a new blocking one
  int threads = 1;  // that call launch() at once
  int capture = 0;  // 1: into a graph
  Arguments arguments{};
};

bool read(std::istream& words, Request& r) {
  Arguments& a = r.arguments;
  words >> r.device >> r.stream >> r.threads >> r.capture;
  words >> a.a >> a.b >> a.d >> a.m >> a.n >> a.k >> a.lda >> a.ldb >> a.ldd;
  return !words.fail() && r.threads >= 1;
}

cudaStream_t make_stream(int kind) {
  cudaStream_t stream = nullptr;
  if (kind != 0) cudaStreamCreateWithFlags(&stream, kind == 1 ? cudaStreamNonBlocking : cudaStreamDefault);
  return stream;
}

std::string call(const HostPart& part, const Request& request, cudaStream_t stream) {
  cudaSetDevice(request.device);
  cudaGetLastError();
  const cudaError_t error = part.launch(request.arguments, stream);
  const char* text = part.last_error();
  Object result;
  result.number("error", static_cast<int>(error)).text("error_name", cudaGetErrorName(error));
  result.text("last_error", text != nullptr ? text : "");
  // An error that launch() has not taken surfaces in somebody else's next call.
  result.text("pending", cudaGetErrorName(cudaGetLastError()));
  return result.number("device_after", current_device()).str();
}

std::string run(const HostPart& part, const Request& request) {
  cudaSetDevice(request.device);
  const cudaStream_t stream = make_stream(request.stream);
  if (request.capture != 0) cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  std::vector<std::string> results(static_cast<std::size_t>(request.threads));
  if (request.threads == 1) {
    results[0] = call(part, request, stream);
  } else {
    std::vector<std::thread> threads;
    for (std::string& result : results) threads.emplace_back([&] { result = call(part, request, stream); });
    for (std::thread& thread : threads) thread.join();
  }
  cudaSetDevice(request.device);
  Object reply;
  reply.number("stream", find_stream(stream)->id);
  if (request.capture != 0) {
    cudaGraph_t graph = nullptr;
    std::size_t nodes = 0;
    reply.text("capture", cudaGetErrorName(cudaStreamEndCapture(stream, &graph)));
    if (graph != nullptr) cudaGraphGetNodes(graph, nullptr, &nodes), cudaGraphDestroy(graph);
    reply.number("captured_kernels", nodes);
  }
  std::string list;
  for (const std::string& result : results) list += (list.empty() ? "" : ",") + result;
  reply.raw("results", "[" + list + "]");
  list.clear();
  for (const std::string& event : state().events) list += (list.empty() ? "" : ",") + event;
  state().events.clear();
  if (request.stream != 0) cudaStreamDestroy(stream);
  return reply.raw("events", "[" + list + "]").str();
}

void introduce(const HostPart& part) {
  std::string elements, kernels;
  for (const char* element : part.elements) elements += (elements.empty() ? "" : ",") + quote(element);
  for (const auto& [function, kernel] : state().kernels) kernels += (kernels.empty() ? "" : ",") + quote(kernel.name);
  Object hello;
  hello.raw("elements", "[" + elements + "]").raw("static_mnk", array(part.static_mnk, 3));
  answer(hello.raw("kernels", "[" + kernels + "]").str());
}

}  // namespace

int serve(const HostPart& part) {
  // Answers have stdout to themselves: what the host part prints goes to stderr.
  std::FILE* out = fdopen(dup(STDOUT_FILENO), "w");
  if (out == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return EXIT_FAILURE;
  answer_into(out);
  state().devices.clear();
  state().collecting = true;
  introduce(part);
  for (std::string line; std::getline(std::cin, line);) {
    if (configure(state(), line)) continue;
    std::istringstream words(line);
    std::string what;
    Request request;
    if (!(words >> what) || what != "launch" || !read(words, request)) {
      std::fprintf(stderr, "tmagen stand-in runtime: cannot read \"%s\"\n", line.c_str());
      return EXIT_FAILURE;
    }
    answer(run(part, request));
  }
  return EXIT_SUCCESS;
}

}  // namespace standin
