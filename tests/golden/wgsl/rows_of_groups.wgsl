// sort, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_put(i: u32, w: u32) { b2[i] = w; }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_put(i: u32, w: u32) { b3[i] = w; }
var<workgroup> keys: array<u32, 512>;
var<workgroup> places: array<u32, 512>;
fn swap_pair(low: u32, high: u32, up: bool) {
  let a = keys[low];
  let b = keys[high];
  let p = places[low];
  let q = places[high];
  let after = a > b || (a == b && p > q);
  if (after == up) {
    keys[low] = b;
    keys[high] = a;
    places[low] = q;
    places[high] = p;
  }
}
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
for (var t = LOCAL; t < 512u; t = t + 256u) {
let row = min(GROUP * 16u + t / 32u, 1u - 1u);
let j = t & 31u;
var key = 0xffffffffu;
var place = 0xffffffffu;
if (j < 20u) {
key = bitcast<u32>(bitcast<i32>(b1_at((j))));
place = j;
}
keys[t] = key;
places[t] = place;
}
workgroupBarrier();
for (var size = 2u; size <= 32u; size = size << 1u) {
for (var half = size >> 1u; half > 0u; half = half >> 1u) {
for (var t = LOCAL; t < 256u; t = t + 256u) {
let low = ((t & ~(half - 1u)) << 1u) | (t & (half - 1u));
swap_pair(low, low | half, ((low & 31u) & size) == 0u);
}
workgroupBarrier();
}
}
for (var t = LOCAL; t < 512u; t = t + 256u) {
let row = GROUP * 16u + t / 32u;
if (row < 1u) {
let from_place = t / 32u * 32u + t % 32u;
let to = row * 32u + t % 32u;
b2_put((to), (keys[from_place]));
b3_put((to), (places[from_place]));
}
}
}
// grouped_tiles_f32, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_at(i: u32) -> u32 { return b3[i]; }
@group(0) @binding(4) var<storage, read_write> b4: array<u32>;
fn b4_at(i: u32) -> u32 { return b4[i]; }
@group(0) @binding(5) var<storage, read_write> b5: array<u32>;
fn b5_put(i: u32, w: u32) { b5[i] = w; }
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
if (THREAD >= 9u) { return; }
let n0 = THREAD % 3u * 8u;
let first = THREAD / 3u * 8u;
let place0 = min(first + 0u, 20u - 1u);
let group0 = b1_at((place0));
let row0 = b2_at((place0));
let place1 = min(first + 1u, 20u - 1u);
let group1 = b1_at((place1));
let row1 = b2_at((place1));
let place2 = min(first + 2u, 20u - 1u);
let group2 = b1_at((place2));
let row2 = b2_at((place2));
let place3 = min(first + 3u, 20u - 1u);
let group3 = b1_at((place3));
let row3 = b2_at((place3));
let place4 = min(first + 4u, 20u - 1u);
let group4 = b1_at((place4));
let row4 = b2_at((place4));
let place5 = min(first + 5u, 20u - 1u);
let group5 = b1_at((place5));
let row5 = b2_at((place5));
let place6 = min(first + 6u, 20u - 1u);
let group6 = b1_at((place6));
let row6 = b2_at((place6));
let place7 = min(first + 7u, 20u - 1u);
let group7 = b1_at((place7));
let row7 = b2_at((place7));
var owner = array<u32, 8>(group0, group1, group2, group3, group4, group5, group6, group7);
var row = array<u32, 8>(row0, row1, row2, row3, row4, row5, row6, row7);
let x_base = 0u;
let x_at0 = x_base + (row0) * 12u;
let x_at1 = x_base + (row1) * 12u;
let x_at2 = x_base + (row2) * 12u;
let x_at3 = x_base + (row3) * 12u;
let x_at4 = x_base + (row4) * 12u;
let x_at5 = x_base + (row5) * 12u;
let x_at6 = x_base + (row6) * 12u;
let x_at7 = x_base + (row7) * 12u;
var group = group0;
while (group < 4u) {
let batch = group;
let w_base = (batch) * 216u;
let w_at0 = w_base + (min(n0, 18u - 1u));
let w_at1 = w_base + (min(n0 + 1u, 18u - 1u));
let w_at2 = w_base + (min(n0 + 2u, 18u - 1u));
let w_at3 = w_base + (min(n0 + 3u, 18u - 1u));
let w_at4 = w_base + (min(n0 + 4u, 18u - 1u));
let w_at5 = w_base + (min(n0 + 5u, 18u - 1u));
let w_at6 = w_base + (min(n0 + 6u, 18u - 1u));
let w_at7 = w_base + (min(n0 + 7u, 18u - 1u));
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
for (var k = 0u; k < 12u; k += 1u) {
let x_k0 = (k);
let x0_0 = bitcast<f32>(b3_at((x_at0 + x_k0)));
let x1_0 = bitcast<f32>(b3_at((x_at1 + x_k0)));
let x2_0 = bitcast<f32>(b3_at((x_at2 + x_k0)));
let x3_0 = bitcast<f32>(b3_at((x_at3 + x_k0)));
let x4_0 = bitcast<f32>(b3_at((x_at4 + x_k0)));
let x5_0 = bitcast<f32>(b3_at((x_at5 + x_k0)));
let x6_0 = bitcast<f32>(b3_at((x_at6 + x_k0)));
let x7_0 = bitcast<f32>(b3_at((x_at7 + x_k0)));
let w_k0 = (k) * 18u;
let w0_0 = bitcast<f32>(b4_at((w_at0 + w_k0)));
let w1_0 = bitcast<f32>(b4_at((w_at1 + w_k0)));
let w2_0 = bitcast<f32>(b4_at((w_at2 + w_k0)));
let w3_0 = bitcast<f32>(b4_at((w_at3 + w_k0)));
let w4_0 = bitcast<f32>(b4_at((w_at4 + w_k0)));
let w5_0 = bitcast<f32>(b4_at((w_at5 + w_k0)));
let w6_0 = bitcast<f32>(b4_at((w_at6 + w_k0)));
let w7_0 = bitcast<f32>(b4_at((w_at7 + w_k0)));
let f0_0 = vec4<f32>(w0_0, w1_0, w2_0, w3_0);
let f0_1 = vec4<f32>(w4_0, w5_0, w6_0, w7_0);
c0_0 = c0_0 + x0_0 * f0_0;
c0_1 = c0_1 + x0_0 * f0_1;
c1_0 = c1_0 + x1_0 * f0_0;
c1_1 = c1_1 + x1_0 * f0_1;
c2_0 = c2_0 + x2_0 * f0_0;
c2_1 = c2_1 + x2_0 * f0_1;
c3_0 = c3_0 + x3_0 * f0_0;
c3_1 = c3_1 + x3_0 * f0_1;
c4_0 = c4_0 + x4_0 * f0_0;
c4_1 = c4_1 + x4_0 * f0_1;
c5_0 = c5_0 + x5_0 * f0_0;
c5_1 = c5_1 + x5_0 * f0_1;
c6_0 = c6_0 + x6_0 * f0_0;
c6_1 = c6_1 + x6_0 * f0_1;
c7_0 = c7_0 + x7_0 * f0_0;
c7_1 = c7_1 + x7_0 * f0_1;
}
var all = array<vec4<f32>, 16>(c0_0, c0_1, c1_0, c1_1, c2_0, c2_1, c3_0, c3_1, c4_0, c4_1, c5_0, c5_1, c6_0, c6_1, c7_0, c7_1);
for (var i = 0u; i < 16u; i++) {
let r = i / 2u;
let b = 0u;
let m = row[r];
let n = n0 + i % 2u * 4u;
let v = all[i];
if (first + r < 20u && owner[r] == group) {
let to = (b * 20u + m) * 18u + n;
if (n < 18u) {
b5_put((to), bitcast<u32>(v.x));
}
if (n + 1u < 18u) {
b5_put((to + 1u), bitcast<u32>(v.y));
}
if (n + 2u < 18u) {
b5_put((to + 2u), bitcast<u32>(v.z));
}
if (n + 3u < 18u) {
b5_put((to + 3u), bitcast<u32>(v.w));
}
}
}
var next = 0xffffffffu;
for (var r = 0u; r < 8u; r++) { if (owner[r] > group) { next = min(next, owner[r]); } }
group = next;
}
for (var i = 0u; i < 16u; i++) {
let r = i / 2u;
let b = 0u;
let m = row[r];
let n = n0 + i % 2u * 4u;
let v = vec4<f32>();
if (first + r < 20u && owner[r] >= 4u) {
let to = (b * 20u + m) * 18u + n;
if (n < 18u) {
b5_put((to), bitcast<u32>(v.x));
}
if (n + 1u < 18u) {
b5_put((to + 1u), bitcast<u32>(v.y));
}
if (n + 2u < 18u) {
b5_put((to + 2u), bitcast<u32>(v.z));
}
if (n + 3u < 18u) {
b5_put((to + 3u), bitcast<u32>(v.w));
}
}
}
}
