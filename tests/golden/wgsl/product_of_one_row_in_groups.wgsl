// gemv_rows_f32, 2 groups
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
return low;
}
fn w_byte(p: u32) -> u32 { return (b1_at((p >> 2u)) >> ((p & 3u) * 8u)) & 255u; }
fn w_half(p: u32) -> f32 { return f16_to_f32((b1_at((p >> 2u)) >> ((p & 2u) * 8u)) & 0xffffu); }
fn w_scale(i: u32) -> vec2<f32> {
let b = i / 256u * 144u;
let e = i % 256u;
let g = e / 32u;
let d = w_half(b + 0u);
let j = g & 3u;
let own = w_byte(b + 4u + j);
let low = w_byte(b + 8u + j);
let top = w_byte(b + 12u + j);
return vec2<f32>(d * f32(select(own & 63u, (top & 15u) | ((own >> 2u) & 48u), g > 3u)), -(w_half(b + 2u) * f32(select(low & 63u, (top >> 4u) | ((low >> 2u) & 48u), g > 3u))));
}
fn w_scaled(i: u32, s: vec2<f32>) -> vec4<f32> {
let b = i / 256u * 144u;
let e = i % 256u;
var q = ((vec4<u32>(w_word(b + 16u + e / 64u * 32u + e % 32u)) >> (vec4<u32>((e % 64u) / 32u * 4u) + vec4<u32>(0u, 8u, 16u, 24u))) & vec4<u32>(15u));
let c = vec4<f32>(q) - vec4<f32>(0.0);
return c * s.x + vec4<f32>(s.y);
}
fn w_four(i: u32) -> vec4<f32> { return w_scaled(i, w_scale(i)); }
fn w_at(i: u32) -> f32 { return w_four(i & ~3u)[i & 3u]; }
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
let b = GROUP / 2u;
let first = (GROUP % 2u * 1u + LOCAL % 1u) * 4u;
let lane = LOCAL / 1u;
let batch = b;
let k_begin = 0u;
let k_end = 2048u;
let big_base = 0u;
let little_base = 0u;
let big0 = big_base + (min(first + 0u, 8u - 1u)) * 2048u;
let big1 = big_base + (min(first + 1u, 8u - 1u)) * 2048u;
let big2 = big_base + (min(first + 2u, 8u - 1u)) * 2048u;
let big3 = big_base + (min(first + 3u, 8u - 1u)) * 2048u;
let little0 = little_base + 0u;
var c0 = vec4<f32>();
for (var g = k_begin + lane * 32u; g < k_end; g += 2048u) {
let inner = (g);
let s0 = w_scale(big0 + inner);
let s1 = w_scale(big1 + inner);
let s2 = w_scale(big2 + inner);
let s3 = w_scale(big3 + inner);
for (var j = 0u; j < 32u; j += 4u) {
let other = (g + j);
let v0 = w_scaled(big0 + inner + j, s0);
let v1 = w_scaled(big1 + inner + j, s1);
let v2 = w_scaled(big2 + inner + j, s2);
let v3 = w_scaled(big3 + inner + j, s3);
{
let a = bitcast<vec4<f32>>(b2_at4(((little0 + other) >> 2u)));
c0 = c0 + vec4<f32>(dot(a, v0), dot(a, v1), dot(a, v2), dot(a, v3));
}
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
let to = (b * 1u + m) * 8u + n;
let four = vec4<f32>(v.x, v.y, v.z, v.w);
if (n < 8u) {
b3_put4(((to) >> 2u), bitcast<vec4<u32>>(four));
}
}
}
}
