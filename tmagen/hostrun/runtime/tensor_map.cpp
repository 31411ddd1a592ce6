// SPDX-License-Identifier: Apache-2.0
// Tensor maps: the driver's checks, and a 128-byte encoding of this project's own (the driver's is not documented).
#include <cuda.h>

#include <cstring>

#include "json.hpp"
#include "state.hpp"

namespace {

constexpr std::uint32_t kMagic = 0x50414D54;  // "TMAP"
constexpr std::uint8_t kVersion = 1;
constexpr unsigned kLargestRank = 5;

// The layout of an encoded map. All fields are naturally aligned; the host is little-endian.
struct Encoded {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t data_type;
  std::uint8_t rank;
  std::uint8_t interleave;
  std::uint64_t address;
  std::uint64_t dims[5];
  std::uint64_t strides[4];
  std::uint16_t box[5];
  std::uint8_t element_strides[5];
  std::uint8_t swizzle;
  std::uint8_t l2_promotion;
  std::uint8_t oob_fill;
  std::uint8_t zero[22];
};
static_assert(sizeof(Encoded) == sizeof(CUtensorMap), "an encoded map fills a CUtensorMap");
static_assert(offsetof(Encoded, strides) == 56 && offsetof(Encoded, box) == 88 && offsetof(Encoded, swizzle) == 103,
              "the fields lie where the reader looks for them");

struct Arguments {
  CUtensorMap* map;
  CUtensorMapDataType type;
  cuuint32_t rank;
  std::uintptr_t address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* box;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

// Types of 4 or 6 bits that lie in shared memory as 16 bytes for 16 elements.
bool is_padded(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B || type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

bool is_packed(CUtensorMapDataType type) { return is_padded(type) || type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; }

// Bits of one element in shared memory; 0 for a type that is not known.
unsigned element_bits(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 32;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    default:
      return 0;
  }
}

bool is_floating(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return true;
    default:
      return false;
  }
}

// The widest box row that a swizzle mode takes, bytes; 0 for no limit.
unsigned swizzle_span(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return 0;
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    default:
      return 128;
  }
}

// Whether the device that the calling thread uses has the swizzle mode.
bool swizzle_known(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
    case CU_TENSOR_MAP_SWIZZLE_32B:
    case CU_TENSOR_MAP_SWIZZLE_64B:
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return true;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B:
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B:
      return standin::state().devices.at(standin::current_device()).major >= 10;
    default:
      return false;
  }
}

bool enums_valid(const Arguments& a) {
  const bool interleave = a.interleave >= CU_TENSOR_MAP_INTERLEAVE_NONE && a.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B;
  const bool promotion = a.promotion >= CU_TENSOR_MAP_L2_PROMOTION_NONE && a.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const bool fill = a.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
                    (a.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA && is_floating(a.type));
  return interleave && promotion && fill && swizzle_known(a.swizzle) && element_bits(a.type) != 0;
}

// What packed types need (CUDA driver API, cuTensorMapEncodeTiled): Blackwell, whole groups of elements, few swizzles.
bool packed_valid(const Arguments& a) {
  if (standin::state().devices.at(standin::current_device()).major < 10) return false;
  if (!is_padded(a.type)) return a.dims[0] % 2 == 0;
  const bool six_bits = a.type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  if (six_bits && a.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return false;
  const bool swizzle = a.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || a.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
                       a.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
                       (six_bits && a.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
  return swizzle && a.dims[0] % 128 == 0 && a.box[0] == 128;
}

// CUDA driver API, cuTensorMapEncodeTiled. Where the driver is laxer than its text (a null address, element stride 0
// of a plain layout, interleave without its swizzle) or stricter, this follows the driver.
bool valid(const Arguments& a) {
  if (a.map == nullptr || reinterpret_cast<std::uintptr_t>(a.map) % 64 != 0) return false;
  if (a.dims == nullptr || a.strides == nullptr || a.box == nullptr || a.element_strides == nullptr) return false;
  if (a.rank == 0 || a.rank > kLargestRank || !enums_valid(a)) return false;
  if (is_packed(a.type) && !packed_valid(a)) return false;
  const bool wide = a.interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_padded(a.type);
  const std::uint64_t granule = wide ? 32 : 16;
  if (a.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && a.rank < 3) return false;
  if (a.address % granule != 0 || a.address >> 57 != 0) return false;
  std::uint64_t box_bits = element_bits(a.type);
  for (unsigned i = 0; i < a.rank; ++i) {
    if (a.dims[i] == 0 || a.dims[i] > std::uint64_t{1} << 32) return false;
    if (a.box[i] == 0 || a.box[i] > 256) return false;
    if (a.element_strides[i] == 0 || a.element_strides[i] > 8) return false;
    if (i != 0 && (a.strides[i - 1] % granule != 0 || a.strides[i - 1] >> 40 != 0)) return false;
    box_bits *= a.box[i];
  }
  const auto& device = standin::state().devices.at(standin::current_device());
  if (box_bits / 8 > static_cast<std::uint64_t>(device.smem_per_sm_bytes())) return false;
  if (a.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return true;
  const std::uint64_t row_bits = std::uint64_t{a.box[0]} * element_bits(a.type);
  const unsigned span = swizzle_span(a.swizzle);
  return row_bits % 128 == 0 && (span == 0 || row_bits / 8 <= span);
}

void encode(const Arguments& a) {
  Encoded out{};
  out.magic = kMagic;
  out.version = kVersion;
  out.data_type = static_cast<std::uint8_t>(a.type);
  out.rank = static_cast<std::uint8_t>(a.rank);
  out.interleave = static_cast<std::uint8_t>(a.interleave);
  out.address = a.address;
  for (unsigned i = 0; i < a.rank; ++i) {
    out.dims[i] = a.dims[i];
    out.box[i] = static_cast<std::uint16_t>(a.box[i]);
    out.element_strides[i] = static_cast<std::uint8_t>(a.element_strides[i]);
    if (i != 0) out.strides[i - 1] = a.strides[i - 1];
  }
  out.swizzle = static_cast<std::uint8_t>(a.swizzle);
  out.l2_promotion = static_cast<std::uint8_t>(a.promotion);
  out.oob_fill = static_cast<std::uint8_t>(a.fill);
  std::memcpy(a.map, &out, sizeof out);
}

void keep(const Arguments& a, bool accepted) {
  const auto list = [&](const auto* values, unsigned count) {
    return values != nullptr && a.rank <= kLargestRank ? standin::array(values, count) : std::string("null");
  };
  standin::Object event;
  event.text("event", "encode").number("error", accepted ? 0 : static_cast<int>(CUDA_ERROR_INVALID_VALUE));
  event.number("map", reinterpret_cast<std::uintptr_t>(a.map));
  event.number("data_type", static_cast<int>(a.type)).number("rank", a.rank).number("address", a.address);
  event.raw("dims", list(a.dims, a.rank)).raw("strides", list(a.strides, a.rank != 0 ? a.rank - 1 : 0));
  event.raw("box", list(a.box, a.rank)).raw("element_strides", list(a.element_strides, a.rank));
  event.number("interleave", static_cast<int>(a.interleave)).number("swizzle", static_cast<int>(a.swizzle));
  event.number("l2_promotion", static_cast<int>(a.promotion)).number("oob_fill", static_cast<int>(a.fill));
  standin::record(event.str());
}

}  // namespace

extern "C" CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                           const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                           const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                           CUtensorMapFloatOOBfill fill) {
  const Arguments arguments{map, type, rank, reinterpret_cast<std::uintptr_t>(address), dims, strides,
                            box, element_strides, interleave, swizzle, promotion, fill};
  const bool accepted = valid(arguments);
  if (accepted) encode(arguments);
  keep(arguments, accepted);
  return accepted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
