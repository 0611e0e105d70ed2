// gemv_rows_f32, 8 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_at4(i: u32) -> vec4<u32> { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<u32>>;
fn b3_put4(i: u32, w: vec4<u32>) { b3[i] = w; }
var<workgroup> part: array<vec4<f32>, 64>;
fn f16_to_f32(word: u32) -> f32 {
  let h = word & 0x7fffu;
  let sign = (word & 0x8000u) << 16u;
  if (h >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((h & 0x3ffu) << 13u)); }
  if (h < 0x400u) { return bitcast<f32>(bitcast<u32>(f32(h) * 5.9604644775390625e-8) | sign); }
  return bitcast<f32>(sign | ((h << 13u) + 0x38000000u));
}
fn w_word(p: u32) -> u32 {
let low = b1_at((p >> 2u));
if ((p & 2u) == 0u) { return low; }
return (low >> 16u) | (b1_at(((p >> 2u) + 1u)) << 16u);
}
fn w_byte(p: u32) -> u32 { return (b1_at((p >> 2u)) >> ((p & 3u) * 8u)) & 255u; }
fn w_half(p: u32) -> f32 { return f16_to_f32((b1_at((p >> 2u)) >> ((p & 2u) * 8u)) & 0xffffu); }
fn w_scale(i: u32) -> vec2<f32> {
let b = i / 32u * 18u;
let e = i % 32u;
let g = e / 32u;
let d = w_half(b + 0u);
return vec2<f32>(d, 0.0);
}
fn w_scaled(i: u32, s: vec2<f32>) -> vec4<f32> {
let b = i / 32u * 18u;
let e = i % 32u;
var q = ((vec4<u32>(w_word(b + 2u + e / 32u * 16u + e % 16u)) >> (vec4<u32>((e % 32u) / 16u * 4u) + vec4<u32>(0u, 8u, 16u, 24u))) & vec4<u32>(15u));
let c = vec4<f32>(q) - vec4<f32>(8.0);
return c * s.x;
}
fn w_four(i: u32) -> vec4<f32> { return w_scaled(i, w_scale(i)); }
fn w_at(i: u32) -> f32 { return w_four(i & ~3u)[i & 3u]; }
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
let b = GROUP / 8u;
let first = (GROUP % 8u * 1u + LOCAL % 1u) * 4u;
let lane = LOCAL / 1u;
let batch = b;
let k_begin = 0u;
let k_end = 64u;
let big_base = 0u;
let little_base = 0u;
let big0 = big_base + (min(first + 0u, 32u - 1u)) * 64u;
let big1 = big_base + (min(first + 1u, 32u - 1u)) * 64u;
let big2 = big_base + (min(first + 2u, 32u - 1u)) * 64u;
let big3 = big_base + (min(first + 3u, 32u - 1u)) * 64u;
let little0 = little_base + 0u;
var c0 = vec4<f32>();
for (var k = k_begin + lane * 4u; k < k_end; k += 256u) {
let inner = (k);
let other = (k);
let v0 = w_four(big0 + inner);
let v1 = w_four(big1 + inner);
let v2 = w_four(big2 + inner);
let v3 = w_four(big3 + inner);
{
let a = bitcast<vec4<f32>>(b2_at4(((little0 + other) >> 2u)));
c0 = c0 + vec4<f32>(dot(a, v0), dot(a, v1), dot(a, v2), dot(a, v3));
}
}
part[0u + LOCAL] = c0;
for (var s = 32u; s >= 1u; s = s >> 1u) {
workgroupBarrier();
if (LOCAL < s) {
part[0u + LOCAL] = part[0u + LOCAL] + part[0u + LOCAL + s];
}
}
if (LOCAL >= 1u) { return; }
{
let v = part[0u + LOCAL];
let m = 0u;
let n = first;
{
let to = (b * 1u + m) * 32u + n;
let four = vec4<f32>(v.x, v.y, v.z, v.w);
if (n < 32u) {
b3_put4(((to) >> 2u), bitcast<vec4<u32>>(four));
}
}
}
}
