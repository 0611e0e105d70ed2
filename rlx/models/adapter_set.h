// The adapters of one model, all of them at once: what they add to its graph, and their matrices.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/named_tensor.h"
#include "rlx/ir/graph.h"
#include "rlx/models/adapter.h"
#include "rlx/models/peft_adapter.h"

namespace rlx {

/// Reads adapters, and takes part while the graph of their model is built, as Flow does: it checks what each matrix of
/// the model gets and reports all that is wrong at once. Each matrix has all adapters of it in one stack, ranks filled
/// up with zeros; a token's product is with those of its own adapter alone.
class AdapterSet {
 public:
  /// What PEFT calls the matrix that the model's file has under a name, and the order that its rows have there (empty:
  /// the same).
  struct Module {
    std::string name;
    std::vector<std::int64_t> row_order{};
  };
  using Naming = std::function<std::optional<Module>(std::string_view stored, std::int64_t rows)>;

  /// Errors: InvalidArgument for a name that is empty or stands twice, an adapter without parts, or a scale that is no
  /// number; those of PeftAdapter.
  AdapterSet(std::span<const AdapterOptions> adapters, Naming naming);

  std::vector<std::string> names() const;
  /// y [T, out] of the product of x [T, in] with the matrix `stored`, and what the adapters `ids` (I32 [T]) add to it.
  /// Rows outside [0, number of adapters) stay as they are, bit for bit. `head`: it is the output layer.
  Expr add(Expr y, Expr x, const std::string& stored, Expr ids, bool head = false) {
    return add_products(y, x, {&stored, 1}, ids, ids, head);
  }
  /// The same for rows of which each went through the matrix stored[which], I32 or I64 [T].
  Expr add_experts(Expr y, Expr x, std::span<const std::string> stored, Expr which, Expr ids);
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
  Expr add_products(Expr y, Expr x, std::span<const std::string> stored, Expr groups, Expr ids, bool head);
  std::optional<Halves> take(Part& part, const Module& module, std::int64_t in, std::int64_t out, bool head);

  std::vector<Adapter> adapters_{};
  Naming naming_;
  std::vector<NamedTensor> weights_{};
  std::vector<std::string> modules_{};  // of the model
  std::vector<std::string> faults_{};   // sentences
};

}  // namespace rlx
