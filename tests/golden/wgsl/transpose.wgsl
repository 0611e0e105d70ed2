// transpose, 1 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_put4(i: u32, w: vec4<u32>) { b2[i] = w; }
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let i = THREAD;
if (i >= 192u) { return; }
let c2 = (i) % 2u;
let c2_ = (i) / 2u;
let c1 = (c2_) % 8u;
let c1_ = (c2_) / 8u;
let c0 = c1_;
let source = c0 * 2u + c1 * 24u + c2;
b2_put4((i), bitcast<vec4<u32>>(b1_at4((source))));
}
