// A caller of one generated kernel: its emitted launch() with leading dimensions, from several streams and host threads,
// and inside a CUDA graph that is replayed with other inputs. D is compared with a product of integers.
//
//   nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a -DKERNEL=NAME -DKERNEL_FILE='"NAME.cu"' consumer.cu
//   ./a.out M,N,K [M,N,K ...]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <type_traits>
#include <vector>

#include KERNEL_FILE

namespace {

namespace kernel = KERNEL;
using A = std::remove_cv_t<std::remove_pointer_t<decltype(kernel::GemmArgs::a)>>;
using B = std::remove_cv_t<std::remove_pointer_t<decltype(kernel::GemmArgs::b)>>;
using D = std::remove_pointer_t<decltype(kernel::GemmArgs::d)>;

constexpr int kStreams = 4;
constexpr int kRounds = 6;
constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kPoison = 0xFF;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s (%s)\n", what, cudaGetErrorString(status), kernel::last_error());
  std::exit(1);
}

// Integers of -2 to 2, without a pattern that a wrong tile or stage could repeat.
__device__ int value(int64_t row, int64_t column, int salt) {
  uint32_t hash = static_cast<uint32_t>(row) * 2654435761u ^ static_cast<uint32_t>(column) * 2246822519u;
  hash = (hash ^ static_cast<uint32_t>(salt) * 3266489917u ^ hash >> 15) * 668265263u;
  return static_cast<int>((hash >> 16) % 5) - 2;
}

template <class T>
__global__ void fill(T* data, int64_t rows, int64_t columns, int64_t ld, int salt) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < rows * columns) data[i / columns * ld + i % columns] = T(float(value(i / columns, i % columns, salt)));
}

// Counts the elements of D that are not the rounded integer product. Poison is no number.
__global__ void compare(const D* d, int64_t m, int64_t n, int64_t k, int64_t ldd, int salt, unsigned* wrong) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= m * n) return;
  int sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += value(i / n, j, salt) * value(i % n, j, salt + 1);
  const D expected = D(static_cast<float>(sum));
  if (!(static_cast<float>(d[i / n * ldd + i % n]) == static_cast<float>(expected))) atomicAdd(wrong, 1u);
}

// Counts the bytes that are neither D's nor poison: gaps between rows and guards around the matrix.
__global__ void stray(const unsigned char* bytes, int64_t total, int64_t m, int64_t row_bytes, int64_t pitch,
                      unsigned* wrong) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int64_t at = i - kGuardBytes;
  const bool inside = at >= 0 && at < m * pitch && at % pitch < row_bytes;
  if (!inside && bytes[i] != kPoison) atomicAdd(wrong, 1u);
}

unsigned blocks(int64_t count) { return static_cast<unsigned>((count + 255) / 256); }

struct Problem {
  int64_t m, n, k, lda, ldb, ldd;
  A* a = nullptr;
  B* b = nullptr;
  unsigned char* bytes = nullptr;  // D between its guards
  unsigned* wrong = nullptr;

  Problem(int64_t m_, int64_t n_, int64_t k_, int64_t pad)
      : m(m_), n(n_), k(k_), lda(padded(k_, pad, sizeof(A))), ldb(padded(k_, pad + 1, sizeof(B))), ldd(padded(n_, pad + 2, sizeof(D))) {
    check(cudaMalloc(&a, m * lda * sizeof(A) + 16), "cudaMalloc");
    check(cudaMalloc(&b, n * ldb * sizeof(B) + 16), "cudaMalloc");
    check(cudaMalloc(&bytes, total_bytes()), "cudaMalloc");
    check(cudaMallocManaged(&wrong, sizeof(unsigned)), "cudaMallocManaged");
    *wrong = 0;
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;
  ~Problem() {
    cudaFree(a);
    cudaFree(b);
    cudaFree(bytes);
    cudaFree(wrong);
  }

  // Rows start at multiples of 16 bytes, `chunks` of them apart from what the row needs.
  static int64_t padded(int64_t columns, int64_t chunks, int64_t element_bytes) {
    const int64_t per_chunk = 16 / element_bytes;
    return ((columns + per_chunk - 1) / per_chunk + chunks) * per_chunk;
  }
  int64_t total_bytes() const { return m * ldd * int64_t{sizeof(D)} + 2 * kGuardBytes; }
  D* d() const { return reinterpret_cast<D*>(bytes + kGuardBytes); }

  void inputs(int salt, cudaStream_t stream) {
    if (m * k > 0) fill<<<blocks(m * k), 256, 0, stream>>>(a, m, k, lda, salt);
    if (n * k > 0) fill<<<blocks(n * k), 256, 0, stream>>>(b, n, k, ldb, salt + 1);
    check(cudaMemsetAsync(bytes, kPoison, total_bytes(), stream), "cudaMemsetAsync");
  }
  void launch(cudaStream_t stream) {
    check(kernel::launch({a, b, d(), m, n, k, lda, ldb, ldd}, stream), "launch");
  }
  void verify(int salt, cudaStream_t stream) {
    compare<<<blocks(m * n), 256, 0, stream>>>(d(), m, n, k, ldd, salt, wrong);
    stray<<<blocks(total_bytes()), 256, 0, stream>>>(bytes, total_bytes(), m, n * int64_t{sizeof(D)},
                                                     ldd * int64_t{sizeof(D)}, wrong);
    check(cudaGetLastError(), "comparison");
  }
};

// Each host thread works on a stream of its own; the launches of all of them overlap on the device.
unsigned from_streams(int64_t m, int64_t n, int64_t k) {
  unsigned wrong[kStreams] = {};
  std::vector<std::thread> threads;
  for (int s = 0; s < kStreams; ++s) {
    threads.emplace_back([=, &wrong] {
      Problem problem(m, n, k, s);
      cudaStream_t stream;
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      for (int round = 0; round < kRounds; ++round) {
        problem.inputs(s * kRounds + round, stream);
        problem.launch(stream);
        problem.verify(s * kRounds + round, stream);
      }
      check(cudaStreamSynchronize(stream), "streams");
      wrong[s] = *problem.wrong;
      check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    });
  }
  unsigned sum = 0;
  for (int s = 0; s < kStreams; ++s) {
    threads[s].join();
    sum += wrong[s];
  }
  return sum;
}

// Two launches that fork and join inside one graph, replayed with inputs that change from round to round.
unsigned from_graph(int64_t m, int64_t n, int64_t k) {
  Problem first(m, n, k, 0), second(m, n, k, 3);
  cudaStream_t stream, side;
  cudaEvent_t fork, join;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), "cudaEventCreate");

  cudaGraph_t graph;
  cudaGraphExec_t instance;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  check(cudaEventRecord(fork, stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(side, fork), "cudaStreamWaitEvent");
  first.launch(stream);
  second.launch(side);
  check(cudaEventRecord(join, side), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream, join), "cudaStreamWaitEvent");
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&instance, graph, 0), "cudaGraphInstantiate");

  for (int round = 0; round < kRounds; ++round) {
    first.inputs(round, stream);
    second.inputs(round + 1, stream);
    check(cudaGraphLaunch(instance, stream), "cudaGraphLaunch");
    first.verify(round, stream);
    second.verify(round + 1, stream);
  }
  check(cudaStreamSynchronize(stream), "graph");
  check(cudaGraphExecDestroy(instance), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(cudaEventDestroy(fork), "cudaEventDestroy");
  check(cudaEventDestroy(join), "cudaEventDestroy");
  check(cudaStreamDestroy(side), "cudaStreamDestroy");
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return *first.wrong + *second.wrong;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned wrong = 0;
  for (int i = 1; i < argc; ++i) {
    long long m, n, k;
    if (std::sscanf(argv[i], "%lld,%lld,%lld", &m, &n, &k) != 3) return 2;
    const unsigned streams = from_streams(m, n, k);
    const unsigned graph = from_graph(m, n, k);
    std::printf("%lld,%lld,%lld: %u wrong from %d streams, %u from a graph\n", m, n, k, streams, kStreams, graph);
    wrong += streams + graph;
  }
  return wrong == 0 ? 0 : 1;
}
