// Blocks of models over the weights of a checkpoint: a Flow takes weights by name while a graph is built, knows what
// their shapes must be, and in the end names all that is wrong at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/named_tensor.h"
#include "rlx/ir/graph.h"
#include "rlx/models/decoder_config.h"
#include "rlx/tensor/block_schemes.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

class CompiledGraph;

/// A checkpoint: tensors by name, and which of them hold the blocks of a quantisation scheme as U8 [.., row bytes].
struct ModelWeights {
  std::shared_ptr<const WeightLoader> loader;
  std::string source;                                                    // what errors call it: a path
  std::function<std::optional<QuantScheme>(std::string_view)> scheme{};  // none: no tensor does
};
/// The weights in `path`: a Hugging Face folder, a GGUF file or a safetensors file. Errors: those of their readers.
ModelWeights open_weights(const std::string& path);
/// Weights that are in memory, each in its own dtype; `source` is what errors call them. Errors: InvalidArgument for a
/// name given twice.
ModelWeights weights_in_memory(std::vector<NamedTensor> tensors, std::string source = "weights in memory");

/// Builds blocks on one graph. Every weight becomes a Param with the name that the checkpoint has for it; matrices have
/// its dtype too, so that nothing is widened before a kernel reads it (vectors are F32), and block-quantised ones are
/// Dequantize ops over their codes. Weights are F32 to what follows. What a weight lacks is noted, and `finish` reports
/// all of it.
class Flow {
 public:
  /// InvalidArgument for a checkpoint without a loader.
  Flow(Graph& g, ModelWeights weights);
  /// Without a checkpoint: every weight is as it is asked for, a Param of `dtype`.
  Flow(Graph& g, DType dtype);

  Graph& graph() const { return *graph_; }
  /// Of weights as they are used: F32 unless there is no checkpoint.
  DType dtype() const { return dtype_; }
  /// Whether the checkpoint has a tensor called `name`.
  bool has(std::string_view name) const;
  /// The weight `name`, F32 of these dims; one Param however often it is taken.
  Expr weight(const std::string& name, const std::vector<std::int64_t>& dims);
  /// Rows `ids` (I32 or I64, any rank) of the table `name` [rows, width], F32 [.., width].
  Expr embed(const std::string& name, Expr ids, std::int64_t rows, std::int64_t width);
  /// x [.., K] times `name`.weight [out, K] (or [K, out]: `in_out`), plus `name`.bias [out].
  Expr linear(Expr x, const std::string& name, std::int64_t out, bool bias = false, bool in_out = false);
  /// x [.., K] times `name`.weight [heads * 3 * head_dim, K], rows of q, k and v of each head in turn (GPT-NeoX), plus
  /// `name`.bias: [.., all of q, all of k, all of v]. Rows are brought in that order once, in their dtype or blocks.
  /// InvalidArgument for heads or sizes below 1.
  Expr linear_of_heads(Expr x, const std::string& name, std::int64_t heads, std::int64_t head_dim, bool bias = false);
  /// RMS or layer norm over the last axis of x, with `name`.weight + offset and, for layer norms that have one,
  /// `name`.bias.
  Expr norm(Expr x, const std::string& name, NormKind kind, double eps, bool bias = false, double offset = 0);
  /// The matrices `names`[e] ([N, K] each) as one [E, K, N], for grouped_dot. InvalidArgument for none.
  Expr experts(const std::vector<std::string>& names, std::int64_t k, std::int64_t n);

  /// Whether all weights taken so far are there as they should be.
  bool fits() const { return missing_.empty() && wrong_.empty(); }
  /// Ends the building: every tensor of the checkpoint must have been taken, but for those whose names end as one of
  /// `ignored` does. Errors: BadFile naming tensors that are missing, have another shape or a dtype that is no float,
  /// or belong to no part of `model`.
  void finish(std::string_view model, const std::vector<std::string>& ignored = {}) const;
  /// Gives the params of a program of this graph the values of the checkpoint, bytes as they are; returns how many got
  /// one. Errors: InvalidArgument without a checkpoint, those of CompiledGraph::load_params.
  std::size_t load(CompiledGraph& program) const;
  /// The checkpoint; without a loader where there is none.
  const ModelWeights& weights() const { return weights_; }

 private:
  struct Stored {
    Expr param;
    std::optional<QuantScheme> scheme;
    std::vector<std::int64_t> dims;  // of the numbers
  };
  const Stored& take(const std::string& name, const std::vector<std::int64_t>& dims);
  Expr widened(const Stored& weight, Expr codes) const;

  Graph* graph_;
  ModelWeights weights_;
  DType dtype_ = DType::F32;
  std::map<std::string, Stored> taken_;
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;  // sentences
};

}  // namespace rlx
