// dot_tiles_f32, 4 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_at(i: u32) -> u32 { return b3[i]; }
@group(0) @binding(4) var<storage, read_write> b4: array<u32>;
fn b4_put(i: u32, w: u32) { b4[i] = w; }
var<workgroup> tile: array<vec4<f32>, 512>;
fn relu_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return bitcast<f32>(select(bits, 0u, bits > 0x80000000u && bits <= 0xff800000u));
}
fn finish(acc: f32, b: u32, m: u32, n: u32) -> f32 {
let s0 = acc;
let x1 = bitcast<f32>(b3_at((0u + 0u + (n))));
let t2 = (s0 + x1);
let t3 = relu_f32(t2);
return t3;
}
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
let n0 = GROUP % 2u * 64u;
let m0 = GROUP / 2u % 2u * 64u;
let b = GROUP / 2u / 2u;
let batch = b;
let k_begin = 0u;
let k_end = 40u;
let x_base = 0u;
let w_base = 0u;
let down = LOCAL / 8u;
let across = LOCAL % 8u;
var c0_0 = vec4<f32>();
var c0_1 = vec4<f32>();
var c1_0 = vec4<f32>();
var c1_1 = vec4<f32>();
var c2_0 = vec4<f32>();
var c2_1 = vec4<f32>();
var c3_0 = vec4<f32>();
var c3_1 = vec4<f32>();
var c4_0 = vec4<f32>();
var c4_1 = vec4<f32>();
var c5_0 = vec4<f32>();
var c5_1 = vec4<f32>();
var c6_0 = vec4<f32>();
var c6_1 = vec4<f32>();
var c7_0 = vec4<f32>();
var c7_1 = vec4<f32>();
for (var k0 = k_begin; k0 < k_end; k0 += 16u) {
{
let r = LOCAL / 4u;
let kk = k0 + LOCAL % 4u * 4u;
let inner = x_base + (min(kk, 40u - 4u));
let v0 = select(vec4<f32>(), bitcast<vec4<f32>>(b1_at4(((inner + (min(m0 + r * 4u, 70u - 1u)) * 40u) >> 2u))), kk < k_end);
let v1 = select(vec4<f32>(), bitcast<vec4<f32>>(b1_at4(((inner + (min(m0 + 1u + r * 4u, 70u - 1u)) * 40u) >> 2u))), kk < k_end);
let v2 = select(vec4<f32>(), bitcast<vec4<f32>>(b1_at4(((inner + (min(m0 + 2u + r * 4u, 70u - 1u)) * 40u) >> 2u))), kk < k_end);
let v3 = select(vec4<f32>(), bitcast<vec4<f32>>(b1_at4(((inner + (min(m0 + 3u + r * 4u, 70u - 1u)) * 40u) >> 2u))), kk < k_end);
tile[0u + (LOCAL % 4u * 4u + 0u) * 16u + r] = vec4<f32>(v0.x, v1.x, v2.x, v3.x);
tile[0u + (LOCAL % 4u * 4u + 1u) * 16u + r] = vec4<f32>(v0.y, v1.y, v2.y, v3.y);
tile[0u + (LOCAL % 4u * 4u + 2u) * 16u + r] = vec4<f32>(v0.z, v1.z, v2.z, v3.z);
tile[0u + (LOCAL % 4u * 4u + 3u) * 16u + r] = vec4<f32>(v0.w, v1.w, v2.w, v3.w);
}
for (var q = LOCAL; q < 256u; q += 64u) {
let r = n0 + q % 16u * 4u;
let kk = k0 + q / 16u;
let inner = w_base + (min(kk, 40u - 1u)) * 90u;
tile[256u + q] = select(vec4<f32>(), vec4<f32>(bitcast<f32>(b2_at((inner + (min(r, 90u - 1u))))), bitcast<f32>(b2_at((inner + (min(r + 1u, 90u - 1u))))), bitcast<f32>(b2_at((inner + (min(r + 2u, 90u - 1u))))), bitcast<f32>(b2_at((inner + (min(r + 3u, 90u - 1u)))))), kk < k_end);
}
workgroupBarrier();
for (var s = 0u; s < 16u; s++) {
let a0 = tile[s * 16u + down * 2u + 0u];
let f0 = tile[256u + s * 16u + across * 2u + 0u];
let a1 = tile[s * 16u + down * 2u + 1u];
let f1 = tile[256u + s * 16u + across * 2u + 1u];
c0_0 = c0_0 + a0.x * f0;
c0_1 = c0_1 + a0.x * f1;
c1_0 = c1_0 + a0.y * f0;
c1_1 = c1_1 + a0.y * f1;
c2_0 = c2_0 + a0.z * f0;
c2_1 = c2_1 + a0.z * f1;
c3_0 = c3_0 + a0.w * f0;
c3_1 = c3_1 + a0.w * f1;
c4_0 = c4_0 + a1.x * f0;
c4_1 = c4_1 + a1.x * f1;
c5_0 = c5_0 + a1.y * f0;
c5_1 = c5_1 + a1.y * f1;
c6_0 = c6_0 + a1.z * f0;
c6_1 = c6_1 + a1.z * f1;
c7_0 = c7_0 + a1.w * f0;
c7_1 = c7_1 + a1.w * f1;
}
workgroupBarrier();
}
tile[(down * 4u + 0u) * 16u + across * 2u + 0u] = c0_0;
tile[(down * 4u + 0u) * 16u + across * 2u + 1u] = c0_1;
tile[(down * 4u + 1u) * 16u + across * 2u + 0u] = c1_0;
tile[(down * 4u + 1u) * 16u + across * 2u + 1u] = c1_1;
tile[(down * 4u + 2u) * 16u + across * 2u + 0u] = c2_0;
tile[(down * 4u + 2u) * 16u + across * 2u + 1u] = c2_1;
tile[(down * 4u + 3u) * 16u + across * 2u + 0u] = c3_0;
tile[(down * 4u + 3u) * 16u + across * 2u + 1u] = c3_1;
workgroupBarrier();
for (var q = LOCAL; q < 512u; q += 64u) {
let m = m0 + q / 64u * 8u + 0u + q / 16u % 4u;
let n = n0 + q % 16u * 4u;
let v = tile[q];
if (m < 70u) {
let to = (b * 70u + m) * 90u + n;
if (n < 90u) {
b4_put((to), bitcast<u32>(finish(v.x, b, m, n)));
}
if (n + 1u < 90u) {
b4_put((to + 1u), bitcast<u32>(finish(v.y, b, m, n + 1u)));
}
if (n + 2u < 90u) {
b4_put((to + 2u), bitcast<u32>(finish(v.z, b, m, n + 2u)));
}
if (n + 3u < 90u) {
b4_put((to + 3u), bitcast<u32>(finish(v.w, b, m, n + 3u)));
}
}
}
workgroupBarrier();
tile[(down * 4u + 0u) * 16u + across * 2u + 0u] = c4_0;
tile[(down * 4u + 0u) * 16u + across * 2u + 1u] = c4_1;
tile[(down * 4u + 1u) * 16u + across * 2u + 0u] = c5_0;
tile[(down * 4u + 1u) * 16u + across * 2u + 1u] = c5_1;
tile[(down * 4u + 2u) * 16u + across * 2u + 0u] = c6_0;
tile[(down * 4u + 2u) * 16u + across * 2u + 1u] = c6_1;
tile[(down * 4u + 3u) * 16u + across * 2u + 0u] = c7_0;
tile[(down * 4u + 3u) * 16u + across * 2u + 1u] = c7_1;
workgroupBarrier();
for (var q = LOCAL; q < 512u; q += 64u) {
let m = m0 + q / 64u * 8u + 4u + q / 16u % 4u;
let n = n0 + q % 16u * 4u;
let v = tile[q];
if (m < 70u) {
let to = (b * 70u + m) * 90u + n;
if (n < 90u) {
b4_put((to), bitcast<u32>(finish(v.x, b, m, n)));
}
if (n + 1u < 90u) {
b4_put((to + 1u), bitcast<u32>(finish(v.y, b, m, n + 1u)));
}
if (n + 2u < 90u) {
b4_put((to + 2u), bitcast<u32>(finish(v.z, b, m, n + 2u)));
}
if (n + 3u < 90u) {
b4_put((to + 3u), bitcast<u32>(finish(v.w, b, m, n + 3u)));
}
}
}
}
