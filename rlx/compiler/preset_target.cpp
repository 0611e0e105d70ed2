// The table of documented claims, in our op kinds. The documented Narrow is Slice, Cumsum is Cumulative, and
// DequantMatMul is a matmul that reads a Dequantize.
#include "rlx/compiler/preset_target.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "rlx/compiler/pipeline.h"
#include "rlx/device/registry.h"
#include "rlx/ir/op_def.h"

namespace rlx {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The devices that claim an op which not all devices claim.
struct PartClaim {
  OpKind kind;
  std::initializer_list<FusionTarget> targets;
};

OpSet documented_claims(Device device) {
  using enum FusionTarget;
  static const PartClaim parts[] = {
      {OpKind::Cumulative, {Mlx, Cuda, Rocm, Wgpu, Tpu}},
      {OpKind::AttentionBackward, {Metal, Mlx, Cuda, Rocm, Wgpu}},
      {OpKind::RmsNormBackward, {Metal, Cuda, Wgpu}},
      {OpKind::LayerNormBackward, {Mlx}},
      {OpKind::If, {Mlx}},
      {OpKind::While, {Mlx}},
      {OpKind::Scan, {Mlx}},
      {OpKind::FakeQuantize, {Mlx}},
      {OpKind::Quantize, {Tpu}},
  };
  const FusionTarget family = fusion_target_for(device);
  OpSet set = default_claims(family);
  for (OpKind kind : {OpKind::Activation, OpKind::Cast,      OpKind::Binary,  OpKind::Compare, OpKind::Where,
                      OpKind::Rope,       OpKind::LayerNorm, OpKind::RmsNorm, OpKind::Slice,   OpKind::Attention,
                      OpKind::Reshape,    OpKind::Transpose, OpKind::Concat,  OpKind::Expand,  OpKind::Gather,
                      OpKind::Reduce,     OpKind::Softmax,   OpKind::Scatter, OpKind::TopK,    OpKind::Dequantize})
    set.add(kind);
  for (const PartClaim& part : parts)
    if (std::find(part.targets.begin(), part.targets.end(), family) != part.targets.end()) set.add(part.kind);
  for (const OpDef* def : all_op_defs())
    if (def->is_leaf() || def->view == ViewKind::Always) set.add(def->kind);
  return set;
}

class PresetTarget final : public Target {
 public:
  explicit PresetTarget(Device device)
      : device_(device),
        name_(concat_text(device_info(device).id, " (documented preset)")),
        kinds_(documented_claims(device)) {}
  std::string_view name() const override { return name_; }
  Device device() const override { return device_; }
  const OpSet& kinds() const override { return kinds_; }
  const char* refuses(const Graph& g, NodeId id) const override {
    return has(g.node(id).kind()) ? nullptr : "the documentation of the device does not list the op";
  }
  bool by_kind() const override { return true; }
  bool opaque() const override { return device_ == Device::Tpu || device_ == Device::Mlx || device_ == Device::Ane; }
  TargetLimits limits() const override {
    TargetLimits l;
    switch (device_) {
      case Device::Cuda:
      case Device::Rocm: l.alignment = 256; break;  // the alignment that cudaMalloc and hipMalloc give
      case Device::Metal: l.alignment = 128; break;
      case Device::Gpu:
      case Device::Vulkan:
      case Device::OpenGl:
      case Device::DirectX:
      case Device::WebGpu:  // the limits that every WebGPU adapter grants
        l.alignment = l.view_alignment = 256;
        l.copy_granule = 4;
        l.max_buffer_bytes = l.max_arena_bytes = 128 * kMiB;
        l.max_bindings = 8;
        break;
      case Device::Cpu:
      case Device::Mlx:
      case Device::Ane:
      case Device::Tpu: break;
    }
    return l;
  }

 private:
  Device device_;
  std::string name_;
  OpSet kinds_;
};

}  // namespace

std::shared_ptr<const Target> preset_target(Device device) {
  (void)device_info(device);
  return std::make_shared<const PresetTarget>(device);
}

std::shared_ptr<const Target> target_or_preset(Device device) {
  const std::shared_ptr<const Backend> backend = backend_for(device);
  return backend ? backend->target({}) : preset_target(device);
}

}  // namespace rlx
