// SPDX-License-Identifier: Apache-2.0
// Ordinary CUDA code for tests/emu/test_compiled.py. kernels.ptx is what nvcc 13.0 makes of it:
//     nvcc -std=c++17 -arch=sm_100a -ptx kernels.cu -o kernels.ptx
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
extern "C" __global__ void reduce(const float* in, float* out, int n) {
  __shared__ float s[256];
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o > 0; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void warpsum(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  out[threadIdx.x] = v + __popc(__ballot_sync(~0u, v & 1)) + __reduce_add_sync(~0u, threadIdx.x);
}
extern "C" __global__ void sw(const int* in, int* out) {
  int x = in[threadIdx.x], r;
  switch (x) {
    case 0:
      r = x + 5;
      break;
    case 1:
      r = x * 77;
      break;
    case 2:
      r = x ^ 123;
      break;
    case 3:
      r = 1 - x;
      break;
    case 4:
      r = x << 7;
      break;
    case 5:
      r = in[0];
      break;
    case 6:
      r = in[1] * 3;
      break;
    case 7:
      r = 9;
      break;
    default:
      r = -1;
  }
  out[threadIdx.x] = r;
}
extern "C" __global__ void div64(const int64_t* a, const int64_t* b, int64_t* out) {
  int i = threadIdx.x;
  out[4 * i] = a[i] / b[i];
  out[4 * i + 1] = a[i] % b[i];
  out[4 * i + 2] = (int64_t)((uint64_t)a[i] / (uint64_t)b[i]);
  out[4 * i + 3] = (int)a[i] / 148 + (unsigned)b[i] % 37u;
}
extern "C" __global__ void localarr(const int* in, int* out) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = in[threadIdx.x] * i;
  int s = 0;
  for (int i = 0; i < 16; i++) s += a[(in[threadIdx.x] + i * i) & 15];
  out[threadIdx.x] = s + a[in[threadIdx.x] & 15];
}
extern "C" __global__ void halfs(const __half* a, const __half* b, __half* out, __nv_bfloat16* o2, float* o3) {
  int i = threadIdx.x;
  __half2 x = __halves2half2(a[i], b[i]);
  __half2 y = __hfma2(x, x, x);
  out[2 * i] = __low2half(y);
  out[2 * i + 1] = __hmul(a[i], b[i]);
  o2[i] = __float2bfloat16(__half2float(a[i]) * 3.3f);
  o3[i] = __half2float(a[i]) / __half2float(b[i]);
  float2 f = __half22float2(x);
  o3[32 + i] = fmaf(f.x, f.y, 1.25f);
  o3[64 + i] = sqrtf(fabsf(f.x));
  o3[96 + i] = (float)(int)(f.x * 100.f) + floorf(f.y) + rintf(f.x);
}
extern "C" __global__ void collatz(const unsigned* in, unsigned* out) {
  unsigned x = in[threadIdx.x], n = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x >> 1;
    n++;
    if (n > 1000) break;
  }
  out[threadIdx.x] = n;
}
extern "C" __global__ void scan(const int* in, int* out) {
  extern __shared__ int sm[];
  int t = threadIdx.x;
  sm[t] = in[t];
  __syncthreads();
  for (int o = 1; o < blockDim.x; o *= 2) {
    int v = t >= o ? sm[t - o] : 0;
    __syncthreads();
    sm[t] += v;
    __syncthreads();
  }
  out[t] = sm[t];
}
extern "C" __global__ void hist(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned h[16];
  if (threadIdx.x < 16) h[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&h[in[i] & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], h[threadIdx.x]);
}
extern "C" __global__ void vec(const int4* in, int4* out, const short* s, short* so, const uint8_t* c, int8_t* co) {
  int i = threadIdx.x;
  int4 v = in[i];
  v.x += v.w;
  v.y = max(v.y, v.z);
  v.z = min(v.x, -v.z);
  v.w = abs(v.w);
  out[i] = v;
  so[i] = s[i] * 3 + 1;
  co[i] = (int8_t)(c[i] - 100);
}
extern "C" __global__ void mt(const double* a, double* o, long long* l) {
  int i = threadIdx.x;
  o[i] = a[i] * a[i] + 1.5;
  l[i] = (long long)(a[i] * 1000.0) + __double2int_rn(a[i]) + __clzll((long long)i) + __brev(i) + __ffs(i) +
         __byte_perm(i, 0x12345678, 0x3175);
}
struct P {
  int a;
  short b;
  char c[5];
  double d;
};
extern "C" __global__ void byval(P p, int* o) { o[threadIdx.x] = p.a + p.b + p.c[threadIdx.x % 5] + (int)p.d; }
__constant__ int tab[8] = {1, 1, 2, 3, 5, 8, 13, 21};
__device__ int counter;
extern "C" __global__ void consts(int* o) {
  o[threadIdx.x + blockIdx.x * 32] = tab[(threadIdx.x * 3) & 7];
  if (threadIdx.x == 0) atomicAdd(&counter, 1);
  __syncthreads();
}
extern "C" __global__ void rec(int* o) {  // warp-divergent nested breaks
  int t = threadIdx.x, r = 0;
  for (int i = 0; i < 8; i++) {
    if ((t + i) % 5 == 0) continue;
    for (int j = 0; j < t; j++) {
      if (j * i > 40) break;
      r += j ^ i;
      if (r > 5000) goto done;
    }
  }
done:
  o[t] = r;
}
