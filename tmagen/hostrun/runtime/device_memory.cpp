// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "json.hpp"
#include "protocol.hpp"
#include "state.hpp"

namespace standin {
namespace {

constexpr std::size_t kAlignment = 256;  // of cudaMalloc (CUDA programming guide, device memory accesses)
constexpr std::uintptr_t kBase = 0x200000000000;  // the same in every run, so that reports name the same addresses
constexpr std::size_t kPage = 4096;
constexpr std::size_t kApart = std::size_t{64} << 20;  // a wild pointer that is off by less hits nothing
constexpr std::size_t kPoisoned = std::size_t{1} << 30;  // of a larger allocation, this much at its start

struct Region {
  char* device = nullptr;   // where host code has no access
  char* backdoor = nullptr;  // the same bytes, for copies
  int file = -1;
  std::size_t size = 0;
  std::size_t next = 0;
  std::map<std::uintptr_t, std::size_t> allocations;  // bytes, by address

  bool contains(std::uintptr_t address) const { return address >= kBase && address < kBase + size; }
};

Region* the_region = nullptr;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "tmagen stand-in runtime: cannot map device memory: %s: %s\n", what, std::strerror(errno));
  std::_Exit(4);
}

// Host code that follows a pointer from cudaMalloc ends as it does beside a GPU, but is told why.
void on_segv(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (the_region != nullptr && the_region->contains(address)) {
    std::fflush(nullptr);
    answer(Object().text("event", "host_touched").number("address", address).str());
    std::_Exit(6);
  }
  signal(SIGSEGV, SIG_DFL);  // the instruction runs again, and ends the process
}

Region* make_region() {
  const char* path = std::getenv("TMAGEN_HOSTRUN_MEMORY");
  if (path == nullptr) return nullptr;
  auto* region = new Region;
  region->file = open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (region->file < 0 || fstat(region->file, &status) != 0) die(path);
  region->size = static_cast<std::size_t>(status.st_size);
  const int reserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* device = mmap(reinterpret_cast<void*>(kBase), region->size, PROT_NONE, reserve, -1, 0);
  if (device != reinterpret_cast<void*>(kBase)) die("the range of addresses is taken");
  void* door = mmap(nullptr, region->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, region->file, 0);
  if (door == MAP_FAILED) die("mmap");
  region->device = static_cast<char*>(device);
  region->backdoor = static_cast<char*>(door);
  struct sigaction action {};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  the_region = region;
  return region;
}

Region* region() {
  static Region* const instance = make_region();
  return instance;
}

std::map<void*, std::size_t>& host_allocations() {
  static auto* const instance = new std::map<void*, std::size_t>;
  return *instance;
}

// Pages of the file at their device address, open to host code.
bool open_to_host(const Region& shared, std::size_t offset, std::size_t bytes) {
  const std::size_t first = offset / kPage * kPage, end = (offset + bytes + kPage - 1) / kPage * kPage;
  return mmap(shared.device + first, end - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared.file,
              static_cast<off_t>(first)) != MAP_FAILED;
}

}  // namespace

void* allocate_device(std::size_t bytes, Access access) {
  Region* shared = region();
  if (shared == nullptr) {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded < bytes) return nullptr;
    void* pointer = std::aligned_alloc(kAlignment, rounded);
    if (pointer != nullptr) host_allocations()[pointer] = bytes;
    return pointer;
  }
  const std::size_t offset = shared->next + kAlignment;
  if (bytes > shared->size || offset + bytes + kApart > shared->size) return nullptr;
  shared->next = (offset + bytes + kApart) / kPage * kPage;
  if (access == Access::kHostToo && !open_to_host(*shared, offset, bytes)) return nullptr;
  // Fresh memory holds whatever was there before: all ones are NaNs, and no index into anything.
  std::memset(shared->backdoor + offset, 0xff, bytes < kPoisoned ? bytes : kPoisoned);
  const std::uintptr_t address = kBase + offset;
  shared->allocations[address] = bytes;
  record(Object().text("event", "allocate").number("address", address).number("offset", offset)
             .number("bytes", bytes).str());
  return reinterpret_cast<void*>(address);
}

bool free_device(void* pointer) {
  Region* shared = region();
  if (shared == nullptr) {
    if (host_allocations().erase(pointer) == 0) return false;
    std::free(pointer);
    return true;
  }
  const auto found = shared->allocations.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == shared->allocations.end()) return false;
  record(Object().text("event", "free").number("address", found->first).str());
  // The address is not used again, so that a kernel that still has it is found out; its pages go back.
  const std::size_t offset = found->first - kBase;
  const std::size_t first = offset / kPage * kPage, end = (offset + found->second + kPage - 1) / kPage * kPage;
  madvise(shared->backdoor + first, end - first, MADV_REMOVE);
  mmap(shared->device + first, end - first, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  shared->allocations.erase(found);
  return true;
}

const void* allocation_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto within = [&](std::uintptr_t start, std::size_t bytes) { return address >= start && address - start < bytes; };
  if (const Region* shared = region()) {
    auto found = shared->allocations.upper_bound(address);
    if (found == shared->allocations.begin()) return nullptr;
    --found;
    return within(found->first, found->second) ? reinterpret_cast<const void*>(found->first) : nullptr;
  }
  for (const auto& [start, bytes] : host_allocations()) {
    if (within(reinterpret_cast<std::uintptr_t>(start), bytes)) return start;
  }
  return nullptr;
}

bool device_memory_is_apart() { return region() != nullptr; }

bool is_device_address(const void* pointer) {
  const Region* shared = region();
  return shared != nullptr && shared->contains(reinterpret_cast<std::uintptr_t>(pointer));
}

void* reachable(const void* pointer, std::size_t bytes) {
  Region* shared = region();
  if (!is_device_address(pointer)) return const_cast<void*>(pointer);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = shared->allocations.upper_bound(address);
  if (found == shared->allocations.begin()) return nullptr;
  --found;
  const std::size_t into = address - found->first;
  if (into > found->second || bytes > found->second - into) return nullptr;
  return shared->backdoor + (address - kBase);
}

}  // namespace standin
