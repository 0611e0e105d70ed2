// copy, 7 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_put4(i: u32, w: vec4<u32>) { b2[i] = w; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 1600u) { return; }
let c0 = i;
let source = c0;
b2_put4((i), bitcast<vec4<u32>>(b1_at4((source))));
}
// scatter_add, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_at(i: u32) -> u32 { return b3[i]; }
fn b3_put(i: u32, w: u32) { b3[i] = w; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 64u) { return; }
let c1 = i;
let c0 = 0u;
let base = c1;
for (var n = 0u; n < 7u; n = n + 1u) {
let p0 = bitcast<u32>(bitcast<i32>(b1_at((n))));
if (p0 < 100u) {
let place = base + p0 * 64u;
let u = bitcast<f32>(b2_at((n * 64u + c1)));
b3_put((place), bitcast<u32>((bitcast<f32>(b3_at((place))) + u)));
}
}
}
