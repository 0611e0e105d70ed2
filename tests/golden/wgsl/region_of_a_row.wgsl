// region, 8 groups
@group(0) @binding(1) var<storage, read_write> b1: array<vec4<u32>>;
fn b1_at4(i: u32) -> vec4<u32> { return b1[i]; }
@group(0) @binding(2) var<storage, read_write> b2: array<vec4<u32>>;
fn b2_at4(i: u32) -> vec4<u32> { return b2[i]; }
@group(0) @binding(3) var<storage, read_write> b3: array<vec4<u32>>;
fn b3_put4(i: u32, w: vec4<u32>) { b3[i] = w; }
fn relu_f32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  return bitcast<f32>(select(bits, 0u, bits > 0x80000000u && bits <= 0xff800000u));
}
fn lane(x0: f32, x1: f32) -> f32 {
let s2 = (x0 + x1);
let s4 = (s2 * 2.0f);
let s5 = relu_f32(s4);
return s5;
}
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group_id: vec3<u32>, @builtin(local_invocation_index) LOCAL: u32) {
let GROUP = group_id.x;
let THREAD = GROUP * 256u + LOCAL;
let q = THREAD;
if (q >= 2048u) { return; }
let c1 = (q) % 32u;
let c1_ = (q) / 32u;
let c0 = c1_;
let v0 = bitcast<vec4<f32>>(b1_at4((c0 * 32u + c1)));
let v1 = bitcast<vec4<f32>>(b2_at4((c1)));
let y0 = lane(v0.x, v1.x);
let y1 = lane(v0.y, v1.y);
let y2 = lane(v0.z, v1.z);
let y3 = lane(v0.w, v1.w);
b3_put4((q), bitcast<vec4<u32>>(vec4<f32>(y0, y1, y2, y3)));
}
