// add_f32, floordiv(6*n + 255, 256) groups
@group(0) @binding(1) var<storage, read_write> b1: array<u32>;
fn b1_at(i: u32) -> u32 { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<u32>;
fn b2_at(i: u32) -> u32 { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<u32>;
fn b3_put(i: u32, w: u32) { b3[i] = w; }
@group(0) @binding(0) var<uniform> P: array<vec4<u32>, 1>;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= P[0].x) { return; }
let c1 = (i) % 6u;
let c1_ = (i) / 6u;
let c0 = c1_;
let x0 = bitcast<f32>(b1_at((c0 * 6u + c1)));
let x1 = bitcast<f32>(b2_at((c1)));
let y = (x0 + x1);
b3_put((i), bitcast<u32>(y));
}
