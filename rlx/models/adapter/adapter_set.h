// The adapters of one model, all of them at once: what they add to its graph, and their matrices.
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

/// Reads adapters, and takes part while the graph of their model is built, as Flow does: it checks what each matrix of
/// the model gets and reports all that is wrong at once. Each matrix has all adapters of it in one stack, ranks filled
/// up with zeros; a token's product is with those of its own adapter alone. So it is with what adapters replace.
class AdapterSet {
 public:
  /// What PEFT calls the matrix that the model's file has under a name, and the order that its rows have there (empty:
  /// the same).
  struct Module {
    std::string name;
    std::vector<std::int64_t> row_order{};
    float added = 0;      // to the elements of a norm, in the model's file
    bool turned = false;  // PEFT has its matrix as [in, out]
    std::string stored{};
  };
  using Naming = std::function<std::optional<Module>(std::string_view stored, std::int64_t rows)>;
  /// What adapters have to know of the model.
  struct Model {
    Naming naming;
    std::function<Tensor(const std::string& stored)> weight;  // F32, as the file has it; `stored` with ".weight"
    bool in_out = false;                                      // matrices but the head lie as [in, out]
  };

  /// Errors: InvalidArgument for a name that is empty or stands twice, an adapter without parts, or a scale that is no
  /// number; Unsupported for DoRA beside other parts; those of PeftAdapter.
  AdapterSet(std::span<const AdapterOptions> adapters, Model model);

  std::vector<std::string> names() const;
  /// y [T, out] of the product of x [T, in] with the matrix `stored`, `bias` added to it, and what the adapters `ids`
  /// (I32 [T]) make of it. Rows outside [0, number of adapters) stay as they are, bit for bit. `head`: it is the output
  /// layer.
  Expr add(Expr y, Expr x, const std::string& stored, Expr ids, std::optional<Expr> bias = {}, bool head = false) {
    return add_products(y, x, {&stored, 1}, ids, ids, bias, head);
  }
  /// The same for rows of which each went through the matrix stored[which], I32 or I64 [T]; biases are not in y yet.
  Expr add_experts(Expr y, Expr x, std::span<const std::string> stored, Expr which, Expr ids);
  /// x [T, width], rows `tokens` (I32 [T]) of the table `stored` [rows, width].
  Expr embed(Expr x, Expr tokens, const std::string& stored, std::int64_t rows, Expr ids);
  /// y, x [T, .., width] normalised and multiplied by the vector `stored` and `offset`, for tokens whose adapters have
  /// another such vector. `plain` is x normalised alone.
  Expr norm(Expr y, const std::function<Expr()>& plain, const std::string& stored, double offset, bool bias, Expr ids);
  /// Ends the building. Errors: BadFile naming matrices that are missing, have other shapes or ranks, or belong to no
  /// part of `model`.
  void finish(std::string_view model) const;
  /// The values of the params that `add` has made.
  std::span<const NamedTensor> weights() const { return weights_; }

 private:
  struct Part {
    PeftAdapter file;
    double scale;
    bool targeted = false;  // some matrix of the model
    std::set<std::string> seen{};
  };
  struct Adapter {
    std::string name;
    std::vector<Part> parts{};
  };
  struct Halves {
    Tensor a, b;
    double scale;
  };
  // What an adapter has for a matrix.
  struct Change {
    std::vector<Halves> halves{};
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
  std::map<std::string, Expr> params_{};  // of them, by name
  std::vector<std::string> modules_{};    // of the model
  std::vector<std::string> faults_{};     // sentences
};

}  // namespace rlx
