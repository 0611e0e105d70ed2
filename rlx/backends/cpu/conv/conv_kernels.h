// Convolutions of floats: the kernels of one instruction set.
//
// A convolution is a product whose rows are places of the result and whose columns are its features; k runs over the
// taps of the window and, inside each, over the features of x. Rows come in lines: runs of places along one axis, at
// which x lies in equal steps, so that a tap meets a run of neighbours and, outside of it, padding. The filters lie in
// panels as those of a packed product (kernels.h): of each group by itself, its columns in whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"

namespace rlx::cpu {

inline constexpr int kConvMaxAxes = 8;  // of space

/// An axis of a convolution's rows.
struct ConvRowAxis {
  std::int64_t places = 1;                                               // of the result
  std::int64_t extent = 1;                                               // of x
  std::int64_t taps = 1;                                                 // of the window
  std::int64_t stride = 1, low = 0, lhs_dilation = 1, rhs_dilation = 1;  // as ConvAxis
  std::int64_t x = 0, y = 0, w = 0;                                      // strides in elements
};

/// How the elements of x, w and y are stored. F64 is that of all three; else they are computed with as f32.
enum class ConvType : std::uint8_t { F32, BF16, F16, F64 };

/// What follows a convolution of f32, of each element y of the result in this order: alpha, a number for its feature,
/// `residual`, the activation, bounds, `mul`; or `residual` at the end. Residual and mul lie like the result.
struct ConvEpilogue {
  bool used = false;
  bool residual_after_act = false, has_low = false, has_high = false;
  Act act = Act::None;
  float alpha = 1.0F, low = 0, high = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  const float* mul = nullptr;
};

/// y = x * w. The batch is an axis of one tap; `line` is the axis along which rows lie in lines.
struct ConvProduct {
  int num_axes = 0;  // batch and space
  ConvRowAxis axes[kConvMaxAxes + 1];
  int line = 0;
  std::int64_t groups = 1;                  // of features, or of the batch
  std::int64_t depth = 1;                   // features of x in a group
  std::int64_t features = 1;                // of the result in a group
  std::int64_t x_feature = 1, x_group = 0;  // strides
  std::int64_t w_out = 1, w_in = 1;
  std::int64_t y_feature = 1;
  ConvType x_type = ConvType::F32, w_type = ConvType::F32, y_type = ConvType::F32;
  const void* x = nullptr;
  const void* w = nullptr;       // read by conv_pack_w_f32 alone
  const void* panels = nullptr;  // floats, or doubles
  void* y = nullptr;
  const float* zeros = nullptr;  // what padding reads: `depth` of them for each tap of the longest axis
  ConvEpilogue epilogue{};
};

/// How a convolution is cut; made by `plan`, good for any data of those extents.
struct ConvPlan {
  bool in_place = false;         // rows of x are read where they lie, else packed in runs of k
  bool staged = false;           // but for blocks at the edges of lines, which few features are copied for
  std::int64_t taps = 1, k = 1;  // of the window; taps * depth
  std::int64_t phases = 1;       // lines along an axis of x that is spread: one for each remainder
  std::int64_t lines = 1;        // of all axes and phases
  std::int64_t line_places = 1;  // of the longest line
  std::int64_t blocks_per_line = 1, blocks = 1;
  std::int64_t panels = 1;   // of a group
  std::int64_t k_block = 1;  // steps of k that are packed at a time, whole taps
  std::int64_t blocks_per_chunk = 1, panels_per_chunk = 1, row_chunks = 1, panel_chunks = 1;
  std::int64_t chunks = 0;          // (group * row_chunks + row chunk) * panel_chunks + panel chunk
  std::int64_t panel_elements = 0;  // of the panels of all groups
  std::int64_t pack_chunks = 0;     // of conv_pack_w_f32
  std::int64_t taps_per_pack = 1;
  std::size_t scratch_bytes = 0;  // per concurrently running thread
};

/// x as f32 with the padding around it, the features of a place side by side: what rows can read where they lie.
struct ConvCopy {
  int num_axes = 0;  // batch and space
  ConvRowAxis axes[kConvMaxAxes + 1];
  std::int64_t padded[kConvMaxAxes + 1] = {};  // extents
  std::int64_t depth = 1, x_feature = 1, lines = 1, lines_per_chunk = 1;
  ConvType x_type = ConvType::F32;
  const void* x = nullptr;
  float* to = nullptr;
};

/// A convolution in f32 of each feature, or of a few, by filters of their own, over one or two axes of space without
/// lhs_dilation: feature f of the result reads `depth` features of x from f / multiple * depth on.
struct DepthwiseF32 {
  std::int64_t batch = 1, features = 1, depth = 1, multiple = 1;
  ConvRowAxis rows, cols;  // of one axis of space `rows` is 1 by 1
  std::int64_t x_batch = 0, x_feature = 1, y_batch = 0, y_feature = 1, w_feature = 1, w_in = 0;
  const float* x = nullptr;
  const float* w = nullptr;
  const float* taps = nullptr;  // the filters as [taps, depth, features], where features come last
  float* y = nullptr;
  const void* lanes = nullptr;  // what `depthwise_lanes` wrote
  ConvEpilogue epilogue{};
};
/// Whether a vector of features of the result, which come last, can find its features of x in one vector.
constexpr bool few_spread(std::int64_t depth, std::int64_t multiple) {
  return multiple <= 8 && (multiple & (multiple - 1)) == 0 && depth <= multiple;
}
/// Whether groups of `depth` features of x and `multiple` of the result are taken like features by themselves: not
/// where a product of each group would fill its vectors.
constexpr bool takes_few(std::int64_t depth, std::int64_t multiple, bool features_last) {
  return features_last ? few_spread(depth, multiple) : multiple <= 8 && depth <= 8;
}
/// A chunk has some lines of the result: of all features, where those lie side by side in x and y, else of some.
struct DepthwisePlan {
  bool features_last = true;
  std::int64_t lines = 0, lines_per_chunk = 1, line_chunks = 1;  // of the batch; features first: of a feature
  std::int64_t cols_per_chunk = 1, col_chunks = 1;               // features last
  std::int64_t features_per_chunk = 1;                           // of the batch, features first
  std::int64_t chunks = 0;
  std::size_t lane_bytes = 0;  // small planes: which lanes each tap meets, the same in all of them
};

struct ConvKernels {
  ConvPlan (*plan)(const ConvProduct& conv, int threads);
  /// Copies some lines along the last axis.
  void (*copy_x)(const ConvCopy& copy, std::int64_t chunk);
  /// Writes panels of the filters; all chunks come before any chunk of `run`.
  void (*pack_w)(const ConvProduct& conv, const ConvPlan& plan, void* panels, std::int64_t chunk);
  void (*run)(const ConvProduct& conv, const ConvPlan& plan, std::int64_t chunk, void* scratch);
  DepthwisePlan (*depthwise_plan)(const DepthwiseF32& conv, int threads);
  /// Writes `lane_bytes`; reads extents alone.
  void (*depthwise_lanes)(const DepthwiseF32& conv, void* lanes);
  /// Writes [taps, depth, features].
  void (*depthwise_pack)(const DepthwiseF32& conv, float* taps);
  void (*depthwise)(const DepthwiseF32& conv, const DepthwisePlan& plan, std::int64_t chunk);
};
/// Of an instruction set that this machine runs.
const ConvKernels& conv_kernels(Isa isa);

}  // namespace rlx::cpu
