// SPDX-License-Identifier: Apache-2.0
// Streams and their capture. Nothing runs, so a stream has nothing to wait for.
#include <memory>

#include "state.hpp"

using standin::finish;
using standin::Lock;
using standin::state;
using standin::Stream;

namespace {

struct Graph {
  std::size_t nodes;
};

cudaError_t create(cudaStream_t* handle, bool blocking) {
  if (handle == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(state().mutex);
  // The handle is only a key; it is never reused, so that a stale one is recognised.
  *handle = reinterpret_cast<cudaStream_t>(new char);
  Stream& stream = state().streams[*handle];
  stream.id = state().next_stream++;
  stream.device = standin::current_device();
  stream.blocking = blocking;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* handle) { return create(handle, true); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return create(handle, (flags & cudaStreamNonBlocking) == 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Lock lock(state().mutex);
  return finish(state().streams.erase(handle) != 0 ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Lock lock(state().mutex);
  if (standin::find_stream(handle) == nullptr) return finish(cudaErrorInvalidResourceHandle);
  return finish(standin::break_captures() ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

// Whatever was launched is done.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Lock lock(state().mutex);
  return finish(standin::find_stream(handle) != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const Lock lock(state().mutex);
  Stream* stream = standin::find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->id == 0) return finish(cudaErrorStreamCaptureUnsupported);
  if (stream->capturing) return finish(cudaErrorIllegalState);
  stream->capturing = true;
  stream->invalidated = false;
  stream->captured = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Lock lock(state().mutex);
  Stream* stream = standin::find_stream(handle);
  if (stream == nullptr || status == nullptr) return finish(cudaErrorInvalidValue);
  *status = !stream->capturing    ? cudaStreamCaptureStatusNone
            : stream->invalidated ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Lock lock(state().mutex);
  Stream* stream = standin::find_stream(handle);
  if (stream == nullptr || graph == nullptr) return finish(cudaErrorInvalidValue);
  *graph = nullptr;
  if (!stream->capturing) return finish(cudaErrorIllegalState);
  stream->capturing = false;
  if (stream->invalidated) return finish(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{stream->captured});
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (graph == nullptr || count == nullptr) return finish(cudaErrorInvalidValue);
  if (nodes != nullptr) standin::not_modelled("the nodes of a graph, other than their number");
  *count = reinterpret_cast<Graph*>(graph)->nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}

}  // extern "C"
