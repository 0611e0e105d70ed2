// Model building blocks over the weights of a checkpoint. A Flow takes weights by name while a graph is built, checks
// their shapes, and reports all errors together at the end.
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

/// A checkpoint: tensors by name, and which of them hold quantized blocks as U8 [.., row bytes].
struct ModelWeights {
  std::shared_ptr<const WeightLoader> loader;
  std::string source;                                                    // the name in errors: a path
  std::function<std::optional<QuantScheme>(std::string_view)> scheme{};  // null: no tensor is quantized
};
/// The weights in `path`: a Hugging Face folder, a GGUF file or a safetensors file. Errors: those of their readers.
ModelWeights open_weights(const std::string& path);
/// A checkpoint of tensors in memory, each in its own dtype. `source` is its name in errors. Errors: InvalidArgument
/// for a repeated name.
ModelWeights weights_in_memory(std::vector<NamedTensor> tensors, std::string source = "weights in memory");

/// Builds blocks on one graph. Every weight becomes a Param with its name in the checkpoint, or a State when it is
/// trained. Matrices keep their stored
/// dtype, so that they are not converted before a kernel reads them; vectors are F32. Block-quantized matrices are
/// Dequantize ops over their quantized values. Later ops see F32 weights. Missing and wrong weights are recorded, and
/// `finish` reports all of them.
class Flow {
 public:
  /// InvalidArgument for a checkpoint without a loader.
  Flow(Graph& g, ModelWeights weights);
  /// Without a checkpoint: every weight is a Param of `dtype` with the requested shape.
  Flow(Graph& g, DType dtype);
  /// For training: every weight is an F32 State of the graph, which starts with the numbers of the checkpoint (those of
  /// blocks are dequantized). Give `names()` to value_and_grad and the next values to Graph::set_state; see
  /// docs/training.md. InvalidArgument for a checkpoint without a loader.
  static Flow trainable(Graph& g, ModelWeights start);
  /// The same from scratch. Matrices of K inputs start with uniform numbers of variance 1 / K, scales of norms with 1,
  /// other vectors with 0. The numbers depend on `seed` and the name of the weight alone.
  static Flow trainable(Graph& g, std::uint64_t seed);

  /// The graph that it builds on.
  Graph& graph() const { return *graph_; }
  /// The dtype of weights in the graph: F32, or the chosen dtype without a checkpoint.
  DType dtype() const { return dtype_; }
  /// Whether the checkpoint has a tensor called `name`.
  bool has(std::string_view name) const;
  /// The weight `name`, F32 with these dims. Repeated calls return one Param; `finish` refuses other dims. This call
  /// and the following ones name your line in errors and nodes.
  Expr weight(const std::string& name, const std::vector<std::int64_t>& dims, SourceLoc loc = SourceLoc::current());
  /// Rows `ids` (I32 or I64, any rank) of the table `name` [rows, width], F32 [.., width].
  Expr embed(const std::string& name, Expr ids, std::int64_t rows, std::int64_t width,
             SourceLoc loc = SourceLoc::current());
  /// x [.., K] times `name`.weight [out, K] (or [K, out]: `in_out`), plus `name`.bias [out].
  Expr linear(Expr x, const std::string& name, std::int64_t out, bool bias = false, bool in_out = false,
              SourceLoc loc = SourceLoc::current());
  /// x [.., K] times `name`.weight [heads * 3 * head_dim, K], whose rows are q, k and v of each head in turn
  /// (GPT-NeoX), plus `name`.bias: [.., all of q, all of k, all of v]. The rows are reordered once, in their dtype or
  /// blocks. InvalidArgument for heads or sizes below 1.
  Expr linear_of_heads(Expr x, const std::string& name, std::int64_t heads, std::int64_t head_dim, bool bias = false,
                       SourceLoc loc = SourceLoc::current());
  /// RMS or layer norm over the last axis of x, with `name`.weight + offset and, with `bias`, `name`.bias.
  Expr norm(Expr x, const std::string& name, NormKind kind, double eps, bool bias = false, double offset = 0,
            SourceLoc loc = SourceLoc::current());
  /// The matrices `names`[e], each [N, K], as one [E, K, N] for grouped_dot. InvalidArgument for no names.
  Expr experts(const std::vector<std::string>& names, std::int64_t k, std::int64_t n,
               SourceLoc loc = SourceLoc::current());

  /// Whether all weights so far exist with the expected shapes.
  bool fits() const { return missing_.empty() && wrong_.empty(); }
  /// Finishes the build. Every tensor of the checkpoint must have been used, except names with a suffix in `ignored`.
  /// Errors: BadFile naming tensors that are missing, have another shape or a dtype that is not a float, or belong to
  /// no part of `model`.
  void finish(std::string_view model, const std::vector<std::string>& ignored = {}) const;
  /// Sets the params of a program of this graph to the checkpoint's values, without conversion. Returns how many were
  /// set. Errors: InvalidArgument without a checkpoint, those of CompiledGraph::load_params.
  /// InvalidArgument also for a trainable flow, whose states start with these values.
  std::size_t load(CompiledGraph& program) const;
  /// The names of all weights so far, sorted.
  std::vector<std::string> names() const;
  /// The values that the weights of a trainable flow have in a program of this graph, or in one that shares its states,
  /// for write_safetensors and weights_in_memory. Errors: InvalidArgument for a flow of params, those of
  /// CompiledGraph::read_state.
  std::vector<NamedTensor> trained_weights(const CompiledGraph& program) const;
  /// The checkpoint; without a loader if there is none.
  const ModelWeights& weights() const { return weights_; }

 private:
  struct Stored {
    Expr param;
    std::optional<QuantScheme> scheme;
    std::vector<std::int64_t> dims;  // dims of the elements
  };
  /// What a weight of a trainable flow without a checkpoint starts with.
  struct Start {
    std::int64_t inputs = 0;  // of a matrix; 0: the extent of its last axis
    double value = 0;         // of a vector
  };
  const Stored& take(const std::string& name, const std::vector<std::int64_t>& dims, Start start);
  const Stored& take(const std::string& name, const std::vector<std::int64_t>& dims) { return take(name, dims, {}); }
  Expr started(const std::string& name, const std::vector<std::int64_t>& dims, Start start);
  Tensor first_value(const std::string& name, const Stored& weight, Start start) const;
  Expr widened(const Stored& weight, Expr codes) const;

  Graph* graph_;
  ModelWeights weights_;
  DType dtype_ = DType::F32;
  std::optional<std::uint64_t> seed_{};  // of a trainable flow
  std::map<std::string, Stored> taken_;
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;  // one sentence each
};

}  // namespace rlx
