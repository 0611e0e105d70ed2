// softmax_f32, 9 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_put4(i: u32, w: vec4<u32>) { b2[i] = w; }
var<workgroup> part: array<f32, 32>;
fn f32_of(bits: u32) -> f32 { return bitcast<f32>(bits); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn pow2(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
fn scale2(x: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return x * pow2(half) * pow2(n - half);
}
fn exp_f32(x: f32) -> f32 {
  let v4 = min(89f, max((-105f), x));
  let v7 = round((v4 * 1.44269502f));
  let v11 = (v7 * 0.000212194442f + (v7 * (-0.693359375f) + v4));
  let v16 = ((0.00138145813f * v11 + 0.00836872403f) * v11 + 0.041668389f);
  let v22 = ((((v16 * v11 + 0.166665211f) * v11 + 0.49999994f) * v11) * v11 + v11);
  return select(scale2((v22 + 1f), i32(v7)), x, is_nan(x));
}
fn largest_of_row(v: f32, local: u32) -> f32 {
part[local] = v;
for (var s = 16u; s > 0u; s = s >> 1u) {
workgroupBarrier();
if (local < s) { let a = part[local]; let b = part[local + s]; part[local] = max(a, b); }
}
workgroupBarrier();
let all = part[0];
workgroupBarrier();
return all;
}
fn sum_of_row(v: f32, local: u32) -> f32 {
part[local] = v;
for (var s = 16u; s > 0u; s = s >> 1u) {
workgroupBarrier();
if (local < s) { let a = part[local]; let b = part[local + s]; part[local] = a + b; }
}
workgroupBarrier();
let all = part[0];
workgroupBarrier();
return all;
}
@compute @workgroup_size(32) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 32u + LOCAL;
var top = vec4<f32>(f32_of(0xff800000u));
for (var i = LOCAL; i < 16u; i += 32u) {
let x = bitcast<vec4<f32>>(b1_at4((((GROUP) * 64u + (i * 4u)) >> 2u)));
top = max(top, vec4<f32>(select(x.x, f32_of(0x7f800000u), is_nan(x.x)), select(x.y, f32_of(0x7f800000u), is_nan(x.y)), select(x.z, f32_of(0x7f800000u), is_nan(x.z)), select(x.w, f32_of(0x7f800000u), is_nan(x.w))));
}
let most = largest_of_row(max(max(top.x, top.y), max(top.z, top.w)), LOCAL);
let bits = bitcast<u32>(most);
let shift = select(most, 0.0, bits == 0xff800000u);
var total = vec4<f32>();
for (var i = LOCAL; i < 16u; i += 32u) {
let x = bitcast<vec4<f32>>(b1_at4((((GROUP) * 64u + (i * 4u)) >> 2u)));
let d = x - shift;
let e = vec4<f32>(exp_f32(d.x), exp_f32(d.y), exp_f32(d.z), exp_f32(d.w));
total = total + e;
}
let all = sum_of_row((total.x + total.y) + (total.z + total.w), LOCAL);
var scale = 1.0 / select(all, 1.0, all == 0.0);
if (bits == 0x7f800000u) { scale = f32_of(0x7fc00000u); }
for (var i = LOCAL; i < 16u; i += 32u) {
let x = bitcast<vec4<f32>>(b1_at4((((GROUP) * 64u + (i * 4u)) >> 2u)));
let d = x - shift;
let e = vec4<f32>(exp_f32(d.x), exp_f32(d.y), exp_f32(d.z), exp_f32(d.w));
let y = e * scale;
b2_put4((((GROUP) * 64u + (i * 4u)) >> 2u), bitcast<vec4<u32>>(y));
}
}
