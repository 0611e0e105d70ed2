// region, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
fn b1_half(i: u32) -> u32 { return b1_at(i >> 1u) >> ((i & 1u) * 16u); }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
fn b2_half(i: u32) -> u32 { return b2_at(i >> 1u) >> ((i & 1u) * 16u); }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_put(i: u32, w: u32) { b3[i] = w; }
fn f32_to_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
fn round_bf16(x: f32) -> f32 { return bitcast<f32>(f32_to_bf16(x) << 16u); }
fn abs_f32(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }
struct Element { r0: u32, }
fn element(i: u32) -> Element {
let c1 = (i) % 3u;
let c1_ = (i) / 3u;
let c0 = c1_;
let x0 = bitcast<f32>((b1_half((c0 * 3u + c1))) << 16u);
let x1 = bitcast<f32>((b2_half((c1))) << 16u);
let s2 = round_bf16((x0 * x1));
let s3 = round_bf16(abs_f32(s2));
return Element(f32_to_bf16(s3));
}
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let first = THREAD * 2u;
if (first >= 27u) { return; }
var e0: Element;
if (first + 0u < 27u) { e0 = element(first + 0u); }
var e1: Element;
if (first + 1u < 27u) { e1 = element(first + 1u); }
b3_put(((first + 0u) / 2u), (e0.r0 << 0u) | (e1.r0 << 16u));
}
