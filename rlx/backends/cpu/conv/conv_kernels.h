// Convolution kernels of one instruction set.
//
// A convolution is an implicit GEMM: its rows are result positions, its columns are result features, and k runs over
// the taps of the window and, within a tap, over the features of x. Rows are grouped in lines: result positions along
// one axis, at which x has equal steps. A tap of a line reads a contiguous range of x, with padding before and after
// it. Filters are packed in panels like packed B (kernels.h), each group by itself, with columns in whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backends/cpu/kernels.h"
#include "rlx/backends/cpu/sum_blocks.h"

namespace rlx::cpu {

inline constexpr int kConvMaxAxes = 8;  // spatial axes

/// One axis of the rows of a convolution.
struct ConvRowAxis {
  std::int64_t places = 1;                                               // extent of the result
  std::int64_t extent = 1;                                               // extent of x
  std::int64_t taps = 1;                                                 // extent of the window
  std::int64_t stride = 1, low = 0, lhs_dilation = 1, rhs_dilation = 1;  // as ConvAxis
  std::int64_t x = 0, y = 0, w = 0;                                      // strides in elements
};

/// Element type of x, w and y. F64 is the type of all three; other types are computed as f32.
enum class ConvType : std::uint8_t { F32, BF16, F16, F64 };

/// The epilogue of an f32 convolution, applied to each result in this order: alpha, the bias of its feature,
/// `residual`, the activation, bounds, `mul`. With `residual_after_act` the residual comes last. `residual` and `mul`
/// have the layout of the result.
struct ConvEpilogue {
  bool used = false;
  bool residual_after_act = false, has_low = false, has_high = false;
  Act act = Act::None;
  float alpha = 1.0F, low = 0, high = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  const float* mul = nullptr;
};

/// y = x * w. The batch is an axis with one tap. `line` is the axis that lines run along.
struct ConvGemm {
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
  const void* w = nullptr;       // read by `pack_w` alone
  const void* panels = nullptr;  // floats, or doubles
  void* y = nullptr;
  const float* zeros = nullptr;  // zeros that padding reads: `depth` for each tap of the longest axis
  ConvEpilogue epilogue{};
};

/// How a convolution is split into chunks. `plan` makes it. It is valid for all data of those extents.
struct ConvPlan {
  bool in_place = false;         // rows of x are read in place; else they are packed along k
  bool staged = false;           // few features: blocks at the ends of lines are copied with their padding
  std::int64_t taps = 1, k = 1;  // of the window; taps * depth
  std::int64_t phases = 1;       // an axis of x with lhs_dilation has one line per remainder
  std::int64_t lines = 1;        // of all axes and phases
  std::int64_t line_places = 1;  // of the longest line
  std::int64_t blocks_per_line = 1, blocks = 1;
  std::int64_t panels = 1;   // of a group
  std::int64_t k_block = 1;  // steps of k packed at a time, in whole taps
  std::int64_t blocks_per_chunk = 1, panels_per_chunk = 1, row_chunks = 1, panel_chunks = 1;
  std::int64_t chunks = 0;          // (group * row_chunks + row chunk) * panel_chunks + panel chunk
  std::int64_t panel_elements = 0;  // elements of the panels of all groups
  std::int64_t pack_chunks = 0;     // of `pack_w`
  std::int64_t taps_per_pack = 1;
  std::size_t scratch_bytes = 0;  // per concurrently running thread
};

/// A copy of x as f32 with its padding, channels last, so that rows can be read in place.
struct ConvCopy {
  int num_axes = 0;  // batch and space
  ConvRowAxis axes[kConvMaxAxes + 1];
  std::int64_t padded[kConvMaxAxes + 1] = {};  // extents
  std::int64_t depth = 1, x_feature = 1, lines = 1, lines_per_chunk = 1;
  ConvType x_type = ConvType::F32;
  const void* x = nullptr;
  float* to = nullptr;
};

/// A depthwise or small-group convolution in f32 over one or two spatial axes without lhs_dilation. Feature f of the
/// result reads `depth` features of x from f / multiple * depth on.
struct DepthwiseF32 {
  std::int64_t batch = 1, features = 1, depth = 1, multiple = 1;
  ConvRowAxis rows, cols;  // with one spatial axis `rows` is 1 by 1
  std::int64_t x_batch = 0, x_feature = 1, y_batch = 0, y_feature = 1, w_feature = 1, w_in = 0;
  const float* x = nullptr;
  const float* w = nullptr;
  const float* taps = nullptr;  // the filters as [taps, depth, features], for features_last
  float* y = nullptr;
  const void* lanes = nullptr;  // output of `depthwise_lanes`
  ConvEpilogue epilogue{};
};
/// Whether one vector of x features serves one vector of result features (features last).
constexpr bool few_spread(std::int64_t depth, std::int64_t multiple) {
  return multiple <= 8 && (multiple & (multiple - 1)) == 0 && depth <= multiple;
}
/// Whether groups of `depth` features of x and `multiple` of the result run in the depthwise kernels. They do not where
/// a GEMM of each group would fill its vectors.
constexpr bool takes_few(std::int64_t depth, std::int64_t multiple, bool features_last) {
  return features_last ? few_spread(depth, multiple) : multiple <= 8 && depth <= 8;
}
/// How a depthwise convolution is split into chunks of lines. With `features_last` (features are contiguous in x and y)
/// a chunk computes all features, else `features_per_chunk` of them.
struct DepthwisePlan {
  bool features_last = true;
  std::int64_t lines = 0, lines_per_chunk = 1, line_chunks = 1;  // features_last: lines of the whole batch; else of a
                                                                 // plane
  std::int64_t cols_per_chunk = 1, col_chunks = 1;               // for features_last
  std::int64_t features_per_chunk = 1;                           // features of the batch; not for features_last
  std::int64_t chunks = 0;
  std::size_t lane_bytes = 0;  // small planes: the lane masks of each tap, the same for all planes
};

struct ConvKernels {
  ConvPlan (*plan)(const ConvGemm& conv, int threads);
  /// Copies some lines along the last axis.
  void (*copy_x)(const ConvCopy& copy, std::int64_t chunk);
  /// Packs the filters into panels. All chunks must run before any chunk of `run`.
  void (*pack_w)(const ConvGemm& conv, const ConvPlan& plan, void* panels, std::int64_t chunk);
  void (*run)(const ConvGemm& conv, const ConvPlan& plan, std::int64_t chunk, void* scratch);
  DepthwisePlan (*depthwise_plan)(const DepthwiseF32& conv, int threads);
  /// Writes `lane_bytes` bytes. Reads only extents.
  void (*depthwise_lanes)(const DepthwiseF32& conv, void* lanes);
  /// Writes [taps, depth, features].
  void (*depthwise_pack)(const DepthwiseF32& conv, float* taps);
  void (*depthwise)(const DepthwiseF32& conv, const DepthwisePlan& plan, std::int64_t chunk);
};
/// The kernels of `isa`, which this machine must support.
const ConvKernels& conv_kernels(Isa isa);

}  // namespace rlx::cpu
