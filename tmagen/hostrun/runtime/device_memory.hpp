// SPDX-License-Identifier: Apache-2.0
// Memory that kernels see. Alone, the stand-in hands out host memory under another name. Where TMAGEN_HOSTRUN_MEMORY names
// a file, an emulator maps the same file: device memory then lies at addresses that host code cannot touch, and copies
// go through a second mapping.
#ifndef TMAGEN_HOSTRUN_DEVICE_MEMORY_HPP
#define TMAGEN_HOSTRUN_DEVICE_MEMORY_HPP

#include <cstddef>

namespace standin {

enum class Access { kDevice, kHostToo };  // cudaMalloc; pinned and managed memory

// At least `bytes` bytes, aligned to 256 and, where an emulator looks, to no more. Null: out of memory.
void* allocate_device(std::size_t bytes, Access access);

// False for an address that no allocation begins at.
bool free_device(void* pointer);

// Where host code can reach [pointer, pointer + bytes): the pointer itself outside device memory; null where the bytes
// are not within one allocation.
void* reachable(const void* pointer, std::size_t bytes);

// The start of the allocation that `pointer` is in, or null.
const void* allocation_of(const void* pointer);

// Whether device memory has addresses of its own: an emulator looks.
bool device_memory_is_apart();

// Whether `pointer` is in the range of device memory; never, where no emulator looks.
bool is_device_address(const void* pointer);

}  // namespace standin

#endif
