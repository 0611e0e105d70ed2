// gather_coded, 2 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<u32>>;
fn b3_put4(i: u32, w: vec4<u32>) { b3[i] = w; }
fn f16_to_f32(word: u32) -> f32 {
  let h = word & 0x7fffu;
  let sign = (word & 0x8000u) << 16u;
  if (h >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((h & 0x3ffu) << 13u)); }
  if (h < 0x400u) { return bitcast<f32>(bitcast<u32>(f32(h) * 5.9604644775390625e-8) | sign); }
  return bitcast<f32>(sign | ((h << 13u) + 0x38000000u));
}
fn codes_word(p: u32) -> u32 {
let low = b2_at((p >> 2u));
if ((p & 2u) == 0u) { return low; }
return (low >> 16u) | (b2_at(((p >> 2u) + 1u)) << 16u);
}
fn codes_byte(p: u32) -> u32 { return (b2_at((p >> 2u)) >> ((p & 3u) * 8u)) & 255u; }
fn codes_half(p: u32) -> f32 { return f16_to_f32((b2_at((p >> 2u)) >> ((p & 2u) * 8u)) & 0xffffu); }
fn codes_scale(i: u32) -> vec2<f32> {
let b = i / 256u * 210u;
let e = i % 256u;
let g = e / 16u;
let d = codes_half(b + 208u);
let s = codes_byte(b + 192u + g);
return vec2<f32>(d * f32(bitcast<i32>(s << 24u) >> 24u), 0.0);
}
fn codes_scaled(i: u32, s: vec2<f32>) -> vec4<f32> {
let b = i / 256u * 210u;
let e = i % 256u;
var q = ((vec4<u32>(codes_word(b + 0u + e / 128u * 64u + e % 64u)) >> (vec4<u32>((e % 128u) / 64u * 4u) + vec4<u32>(0u, 8u, 16u, 24u))) & vec4<u32>(15u));
q = q | (((vec4<u32>(codes_word(b + 128u + e / 128u * 32u + e % 32u)) >> (vec4<u32>((e % 128u) / 32u * 2u) + vec4<u32>(0u, 8u, 16u, 24u))) & vec4<u32>(3u)) << vec4<u32>(4u));
let c = vec4<f32>(q) - vec4<f32>(32.0);
return c * s.x;
}
fn codes_four(i: u32) -> vec4<f32> { return codes_scaled(i, codes_scale(i)); }
fn codes_at(i: u32) -> f32 { return codes_four(i & ~3u)[i & 3u]; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 448u) { return; }
let c2 = (i) % 64u;
let c2_ = (i) / 64u;
let c1 = c2_;
let c0 = 0u;
let p0 = u32(clamp(bitcast<i32>(b1_at((c1))), 0, i32(100u) - 1));
let source = (c2 * 4u) + p0 * 256u;
let four = codes_four(source);
b3_put4(((i * 4u) >> 2u), bitcast<vec4<u32>>(four));
}
