// All adapters of one model: their part of its graph, and their matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/named_tensor.h"
#include "rlx/ir/graph.h"
#include "rlx/models/adapter.h"
#include "rlx/models/adapter/peft_adapter.h"

namespace rlx {

/// Reads adapters and adds them to the graph of their model while it is built. Like Flow, it checks every matrix and
/// reports all errors together. All adapters of a matrix are one stack, with ranks padded by zeros. Each token uses
/// only its own adapter's matmuls, and only its own adapter's replaced weights.
class AdapterSet {
 public:
  /// How PEFT calls and stores one weight of the model's file. `row_order`: the order of its rows in PEFT's file
  /// (empty: the same).
  struct Module {
    std::string name;
    std::vector<std::int64_t> row_order{};
    float added = 0;      // constant that the model's file has added to the elements of a norm
    bool turned = false;  // PEFT stores the matrix as [in, out]
    std::string stored{};
  };
  using Naming = std::function<std::optional<Module>(std::string_view stored, std::int64_t rows)>;
  /// The facts of the model that adapters need.
  struct Model {
    Naming naming;
    std::function<Tensor(const std::string& stored)> weight;  // F32, as the file has it; `stored` with ".weight"
    bool in_out = false;                                      // matrices but the head are stored as [in, out]
  };

  /// Errors: InvalidArgument for an empty or repeated name, an adapter without parts, or a scale that is not finite;
  /// Unsupported for DoRA together with other parts; those of PeftAdapter.
  AdapterSet(std::span<const AdapterOptions> adapters, Model model);

  std::vector<std::string> names() const;
  /// Applies the adapters `ids` (I32 [T]) to y [T, out] = x [T, in] times the matrix `stored`, plus `bias`. Rows with
  /// an id outside [0, number of adapters) stay bit for bit unchanged. `head`: `stored` is the output layer.
  Expr add(Expr y, Expr x, const std::string& stored, Expr ids, std::optional<Expr> bias = {}, bool head = false) {
    return add_products(y, x, {&stored, 1}, ids, ids, bias, head);
  }
  /// The same for rows of experts: each row uses the matrix stored[which], I32 or I64 [T]. y has no biases yet.
  Expr add_experts(Expr y, Expr x, std::span<const std::string> stored, Expr which, Expr ids);
  /// Applies the adapters to x [T, width], the rows `tokens` (I32 [T]) of the table `stored` [rows, width].
  Expr embed(Expr x, Expr tokens, const std::string& stored, std::int64_t rows, Expr ids);
  /// Applies the adapters to a norm's output y: x [T, .., width] normalised and multiplied by the vector `stored` plus
  /// `offset`. Tokens whose adapter replaces that vector use the adapter's. `plain` is x normalised alone.
  Expr norm(Expr y, const std::function<Expr()>& plain, const std::string& stored, double offset, bool bias, Expr ids);
  /// Finishes the build. Errors: BadFile naming matrices that are missing, have other shapes or ranks, or belong to no
  /// part of `model`.
  void finish(std::string_view model) const;
  /// The values of the params that the adapters added.
  std::span<const NamedTensor> weights() const { return weights_; }

 private:
  struct Part {
    PeftAdapter file;
    double scale;
    bool targeted = false;  // some matrix of the model matched
    std::set<std::string> seen{};
  };
  struct Adapter {
    std::string name;
    std::vector<Part> parts{};
  };
  struct LowRankPair {
    Tensor a, b;
    double scale;
  };
  // An adapter's change of one matrix.
  struct Change {
    std::vector<LowRankPair> pairs{};
    std::optional<Tensor> lengths{}, weight{}, bias{};
  };
  Expr add_products(Expr y, Expr x, std::span<const std::string> stored, Expr groups, Expr ids,
                    std::optional<Expr> bias, bool head);
  Expr replaced(Expr y, std::span<const Change> changes, Expr groups, Expr ids, const std::string& name,
                const std::function<Expr(Expr stack, Expr which)>& apply);
  std::vector<Module> named(std::span<const std::string> stored, std::int64_t rows);
  void take(Change& change, Part& part, const Module& module, std::int64_t in, std::int64_t out, bool has_bias,
            bool head);
  void take_embedding(Change& change, Part& part, const Module& module, std::int64_t rows, std::int64_t width);
  enum class Saved : std::uint8_t { No, Wrong, Taken };
  Saved take_saved(Change& change, Part& part, const Module& module, const std::vector<std::int64_t>& dims,
                   bool has_bias);
  void check_base(const Part& part, const Module& module);
  void put_gains(std::span<float> to, const Change& change, const Module& module, std::int64_t in, std::int64_t out,
                 bool in_out);
  template <class... Text>
  void fault(const Part& part, const Module& module, const Text&... text);
  Expr param(const std::string& name, Tensor value, Graph& g);

  std::vector<Adapter> adapters_{};
  Model model_;
  std::vector<NamedTensor> weights_{};
  std::map<std::string, Expr> params_{};  // by name, of `weights_`
  std::vector<std::string> modules_{};    // module names of the model
  std::vector<std::string> faults_{};     // one sentence each
};

}  // namespace rlx
