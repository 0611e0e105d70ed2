// gather, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_at4(i: u32) -> vec4<u32> { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<u32>>;
fn b3_put4(i: u32, w: vec4<u32>) { b3[i] = w; }
fn i64_to_index(low: u32, high: u32) -> i32 {
  if (high == bitcast<u32>(bitcast<i32>(low) >> 31u)) { return bitcast<i32>(low); }
  return select(2147483647, -2147483647 - 1, high > 0x7fffffffu);
}
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 112u) { return; }
let c2 = (i) % 16u;
let c2_ = (i) / 16u;
let c1 = c2_;
let c0 = 0u;
let p0 = u32(clamp(i64_to_index(b1_at(((c1) * 2u)), b1_at(((c1) * 2u + 1u))), 0, i32(100u) - 1));
let source = c2 + p0 * 16u;
b3_put4((i), bitcast<vec4<u32>>(b2_at4((source))));
}
