// WGSL functions: 64-bit indices, and random bits.
#include "rlx/codegen/helpers/helper_table.h"

namespace rlx::codegen {
namespace {

constexpr Helper kWordHelpers[] = {
    // The index with these two words, saturated to i32; no axis is longer.
    {"i64_to_index", "", R"(fn i64_to_index(low: u32, high: u32) -> i32 {
  if (high == bitcast<u32>(bitcast<i32>(low) >> 31u)) { return bitcast<i32>(low); }
  return select(2147483647, -2147483647 - 1, high > 0x7fffffffu);
}
)"},
    // Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
    // 2011.
    {"threefry", "", R"(fn threefry_step(x: vec2<u32>, r: u32) -> vec2<u32> {
  let a = x.x + x.y;
  return vec2<u32>(a, ((x.y << r) | (x.y >> (32u - r))) ^ a);
}
fn threefry_even(x: vec2<u32>) -> vec2<u32> {
  return threefry_step(threefry_step(threefry_step(threefry_step(x, 13u), 15u), 26u), 6u);
}
fn threefry_odd(x: vec2<u32>) -> vec2<u32> {
  return threefry_step(threefry_step(threefry_step(threefry_step(x, 17u), 29u), 16u), 24u);
}
fn threefry(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
  let third = key.x ^ key.y ^ 0x1bd11bdau;
  var x = threefry_even(counter + key) + vec2<u32>(key.y, third + 1u);
  x = threefry_odd(x) + vec2<u32>(third, key.x + 2u);
  x = threefry_even(x) + vec2<u32>(key.x, key.y + 3u);
  x = threefry_odd(x) + vec2<u32>(key.y, third + 4u);
  return threefry_even(x) + vec2<u32>(third, key.x + 5u);
}
)"},
};

}  // namespace

std::span<const Helper> word_helpers() { return kWordHelpers; }

}  // namespace rlx::codegen
