// Internal: the tensors of a model in both formats, and how to convert each of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/models/convert/convert_settings.h"
#include "rlx/models/convert/convert_source.h"

namespace rlx {

/// A layer's tensor by both names. "{e}" in the first name stands for the expert number.
struct ExpectedTensor {
  std::string hf, gguf;
  const TensorRule* rule;
  bool is_output() const { return gguf == "output.weight"; }
};
/// All required and optional tensors of a model, in the order of the file to be written. Tensors that are merged into
/// one tensor of a folder are adjacent.
std::vector<ExpectedTensor> expected_tensors(const DecoderFamily& a, const ModelSizes& sizes);

/// Plans tensors from a folder to a GGUF file (`to_gguf`) or back. All constructor arguments must outlive the plans.
class TensorPlans {
 public:
  TensorPlans(const WeightLoader& source, const ModelSizes& sizes, bool to_gguf)
      : source_(source), s_(sizes), to_gguf_(to_gguf) {}

  /// Plans the tensor `name` from `sources`, which exist: one source, except for experts and merged parts. Errors:
  /// BadFile for shapes that do not match the sizes, Unsupported for a dtype that GGUF lacks.
  ConvertedTensor plan(const std::vector<std::string>& sources, std::string name, TensorChange change) const;
  /// Plans one expert's matrix of a tensor that holds all experts. Errors: the same.
  ConvertedTensor plan_expert(const std::string& from, std::string name, std::int64_t expert) const;

 private:
  struct Stored {
    GgufType type;
    std::vector<std::int64_t> dims;  // dims of the elements
  };
  Stored stored(const std::string& name) const;
  template <class F>
  void require(const std::string& name, const Stored& t, std::size_t rank, F fits) const;
  void order_rows(ConvertedTensor& t, std::int64_t heads,
                  std::vector<std::int64_t> (*order)(std::int64_t, std::int64_t, bool)) const;
  void stack(ConvertedTensor& t, const Stored& first) const;
  MatrixPart part_of(const std::string& name, const Stored& t, std::size_t rank) const;
  void turn(ConvertedTensor& t, const Stored& first) const;
  void pick(ConvertedTensor& t, const Stored& first, bool odd) const;
  void weave(ConvertedTensor& t, const Stored& first) const;
  void split_latent(ConvertedTensor& t, const Stored& first, bool keys) const;
  void join_latent(ConvertedTensor& t, const Stored& keys) const;

  const WeightLoader& source_;
  const ModelSizes& s_;
  bool to_gguf_;
};

}  // namespace rlx
