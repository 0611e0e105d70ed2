// attention_few_f32, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_at4(i: u32) -> vec4<u32> { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<u32>>;
fn b3_at4(i: u32) -> vec4<u32> { return b3[i]; }
@group(0) @binding(4) var<storage, read_write> b4: array<vec4<u32>>;
fn b4_put4(i: u32, w: vec4<u32>) { b4[i] = w; }
fn f32_of(bits: u32) -> f32 { return bitcast<f32>(bits); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn score(raw: f32, key: u32, i: u32, h: u32, b: u32, keys: u32, queries: u32) -> f32 {
if (key >= keys) { return f32_of(0xff800000u); }
var s = raw * 0.25f;
let behind = i32(i) + i32(keys) - i32(queries) - i32(key);
if (behind < 0) { return f32_of(0xff800000u); }
return select(s, f32_of(0x7f800000u), is_nan(s));
}
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
fn shift_of(top: f32) -> f32 { return select(top, 0.0, (bitcast<u32>(top) & 0x7fffffffu) == 0x7f800000u); }
var<workgroup> scores: array<f32, 256>;
var<workgroup> factors: array<f32, 4>;
struct Split { m: f32, e: f32 }
fn split_f32(x: f32) -> Split {
  let mag = bitcast<u32>(x) & 0x7fffffffu;
  let small = mag < 0x800000u;
  let bits = select(mag, bitcast<u32>(f32(mag)), small);
  let e = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
  return Split(bitcast<f32>(bits - (bitcast<u32>(e) << 23u)), f32(e + select(0, -149, small)));
}
fn log_f32(x: f32) -> f32 {
  let v2 = split_f32(x).e;
  let v4 = (split_f32(x).m - 1f);
  let v9 = (((-0.0763441846f) * v4 + 0.127619356f) * v4 + (-0.131603777f));
  let v15 = (((v9 * v4 + 0.14201723f) * v4 + (-0.166233346f)) * v4 + 0.200012282f);
  let v21 = (v4 * v4);
  let v24 = ((((v15 * v4 + (-0.250008225f)) * v4 + 0.333333313f) * v4) * v21 + (v2 * (-0.000212194442f)));
  let v32 = select((v2 * 0.693359375f + (v4 + ((-0.5f) * v21 + v24))), x, (bitcast<u32>(x) == 0x7f800000u));
  let v36 = select(v32, f32_of(4286578688u), ((bitcast<u32>(x) & 0x7fffffffu) == 0u));
  return select(select(f32_of(2143289344u), v36, (bitcast<u32>(x) <= 0x80000000u)), x, is_nan(x));
}
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
let first = GROUP % 1u * 4u;
let rest = GROUP / 1u;
let pair = rest;
let b = pair / 1u;
let kv = pair % 1u;
let keys = 40u;
let queries = 1u;
var begin = 0u;
var end = keys;
end = u32(clamp(i32(min(first + 3u, 2u - 1u) / 2u) + i32(keys) - i32(queries) + 1, 0, i32(keys)));
let agreed = vec2<u32>(begin, end);
let quad = LOCAL % 1u;
let lane = LOCAL / 1u;
let r0 = min(first + quad * 4u + 0u, 2u - 1u);
let q0 = (b) * 32u + (r0 / 2u) * 32u + (kv * 2u + r0 % 2u) * 16u;
let r1 = min(first + quad * 4u + 1u, 2u - 1u);
let q1 = (b) * 32u + (r1 / 2u) * 32u + (kv * 2u + r1 % 2u) * 16u;
let r2 = min(first + quad * 4u + 2u, 2u - 1u);
let q2 = (b) * 32u + (r2 / 2u) * 32u + (kv * 2u + r2 % 2u) * 16u;
let r3 = min(first + quad * 4u + 3u, 2u - 1u);
let q3 = (b) * 32u + (r3 / 2u) * 32u + (kv * 2u + r3 % 2u) * 16u;
let row = LOCAL % 4u;
let slice = LOCAL / 4u;
var highest = f32_of(0xff800000u);
var mass = 0.0;
let base = LOCAL / 16u * 1u;
let column0 = (LOCAL % 16u + 0u) * 4u;
var o0_0 = vec4<f32>();
for (var start = agreed.x; start < agreed.y; start += 64u) {
let t0 = (b) * 640u + (min(start + lane + 0u, 40u - 1u)) * 16u + (kv) * 16u;
var s0_0 = 0.0;
var s1_0 = 0.0;
var s2_0 = 0.0;
var s3_0 = 0.0;
for (var d = 0u; d < 16u; d += 4u) {
let a0 = bitcast<vec4<f32>>(b1_at4(((q0 + d) >> 2u)));
let a1 = bitcast<vec4<f32>>(b1_at4(((q1 + d) >> 2u)));
let a2 = bitcast<vec4<f32>>(b1_at4(((q2 + d) >> 2u)));
let a3 = bitcast<vec4<f32>>(b1_at4(((q3 + d) >> 2u)));
let w0 = bitcast<vec4<f32>>(b2_at4(((t0 + d) >> 2u)));
s0_0 = s0_0 + dot(a0, w0);
s1_0 = s1_0 + dot(a1, w0);
s2_0 = s2_0 + dot(a2, w0);
s3_0 = s3_0 + dot(a3, w0);
}
scores[(lane + 0u) * 4u + quad * 4u + 0u] = s0_0;
scores[(lane + 0u) * 4u + quad * 4u + 1u] = s1_0;
scores[(lane + 0u) * 4u + quad * 4u + 2u] = s2_0;
scores[(lane + 0u) * 4u + quad * 4u + 3u] = s3_0;
for (var x = 0u; x < 4u; x++) {
let j = lane + x / 4u * 64u;
let at = j * 4u + quad * 4u + x % 4u;
let r = min(first + quad * 4u + x % 4u, 2u - 1u);
let n = start + j;
scores[at] = score(scores[at], select(n, keys, n >= agreed.y), r / 2u, kv * 2u + r % 2u, b, keys, queries);
}
workgroupBarrier();
var top = highest;
for (var j = 0u; j < 64u; j++) { top = max(top, scores[j * 4u + row]); }
workgroupBarrier();
let off = shift_of(top);
let factor = exp_f32(highest - off);
highest = top;
mass = mass * factor;
for (var x = 0u; x < 4u; x++) {
let at = (slice * 4u + x) * 4u + row;
let p = exp_f32(scores[at] - off);
scores[at] = p;
mass = mass + p;
}
if (slice == 0u) { factors[row] = factor; }
workgroupBarrier();
let f0 = factors[base + 0u];
o0_0 = o0_0 * f0;
for (var j = 0u; j < min(64u, agreed.y - start); j++) {
let key_row = (b) * 640u + (start + j) * 16u + (kv) * 16u;
let p0 = scores[j * 4u + base + 0u];
let x0 = bitcast<vec4<f32>>(b3_at4(((key_row + min(column0, 12u)) >> 2u)));
o0_0 = o0_0 + select(vec4<f32>(), p0 * x0, p0 > 0.0);
}
workgroupBarrier();
}
scores[slice * 4u + row] = mass;
if (slice == 0u) { factors[row] = highest; }
workgroupBarrier();
{
let r = first + base + 0u;
if (r < 2u) {
var top = factors[base + 0u];
var l = 0.0;
for (var s = 0u; s < 16u; s++) { l = l + scores[s * 4u + base + 0u]; }
let i = r / 2u;
let h = kv * 2u + r % 2u;
var acc0 = o0_0;
let bad = bitcast<u32>(top) == 0x7f800000u;
let none = i >= queries || (l == 0.0 && !bad);
let scale = select(1.0 / select(l, 1.0, l == 0.0), f32_of(0x7fc00000u), bad);
if (column0 < 16u) {
let v = select(acc0 * scale, vec4<f32>(), none);
let to = (b) * 32u + (i) * 32u + (h) * 16u + column0;
b4_put4(((to) >> 2u), bitcast<vec4<u32>>(v));
}
}
}
}
