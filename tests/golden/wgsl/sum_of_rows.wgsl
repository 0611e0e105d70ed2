// reduce_sum, 5 groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_put(i: u32, w: u32) { b2[i] = w; }
var<workgroup> shares: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 64u + LOCAL;
let chunk = GROUP / 5u;
let row = GROUP % 5u;
let begin = chunk * 16384u;
let end = min(begin + 16384u, 1000u);
var all = 0.0f;
let c0 = row;
let base = c0 * 1000u;
for (var j = begin + LOCAL; j < end; j = j + 64u) {
let d0 = j;
let term = bitcast<f32>(b1_at((base + d0)));
all = (all + term);
}
shares[LOCAL] = all;
workgroupBarrier();
for (var half = 32u; half > 0u; half = half >> 1u) {
if (LOCAL < half) { shares[LOCAL] = (shares[LOCAL] + shares[LOCAL + half]); }
workgroupBarrier();
}
if (LOCAL == 0u) {
let sum = shares[0];
b2_put((row), bitcast<u32>(sum));
}
}
