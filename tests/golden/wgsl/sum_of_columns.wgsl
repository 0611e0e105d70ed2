// reduce_sum, 4 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_put(i: u32, w: u32) { b2[i] = w; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 1024u) { return; }
let chunk = i / 64u;
let row = i % 64u;
let begin = chunk * 64u;
let end = min(begin + 64u, 1000u);
var all = 0.0f;
let c0 = row;
let base = c0;
for (var j = begin; j < end; j = j + 1u) {
let d0 = j;
let term = bitcast<f32>(b1_at((base + d0 * 64u)));
all = (all + term);
}
b2_put((i), bitcast<u32>(all));
}
// reduce_sum, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_put(i: u32, w: u32) { b2[i] = w; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 64u) { return; }
let row = i;
let begin = 0u;
let end = 16u;
var all = 0.0f;
for (var j = begin; j < end; j = j + 1u) {
let term = bitcast<f32>(b1_at(((j * 64u + row))));
all = (all + term);
}
let y = all;
b2_put((i), bitcast<u32>(y));
}
