// Kernels that work on rows: the elements of some axes, which one group reads several times and reduces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/walk.h"

namespace rlx::codegen {

/// Threads of a row on a rasteriser, which runs eight at a time.
inline constexpr int kRasteriserThreads = 8;

/// One kernel with a group for each row. `x` decides what the rows are: its axes `inside`. Four neighbours are worked
/// on at once where all that is read and written lets them.
class RowKernel {
 public:
  /// `others` are values of x's dims, read and written along with it.
  RowKernel(NodeKernels& node, std::string name, const Ref& x, std::vector<int> inside, const std::vector<Ref>& others);
  KernelBuilder& builder() { return k_; }
  /// "f32", or "vec4<f32>" with four neighbours.
  const std::string& type() const { return type_; }
  bool by_fours() const { return fours_; }
  const Dim& length() const { return length_; }
  /// Statements around `body`, which runs for each element or four, with number `i` in quarters then.
  std::string each(std::string_view body) const;
  /// The element or four of a value of x's dims. `name` is its own in the kernel.
  std::string load(const Ref& r, const std::string& name);
  std::string store(const Ref& r, const std::string& name, std::string_view value);
  /// That of a vector, which is as long as a row.
  std::string load_vector(const Ref& r, const std::string& name);
  /// f(lane) for each lane of the type, as a value of it.
  template <class F>
  std::string lanes(std::string_view value, F f) const {
    if (!fours_) return f(std::string(value));
    std::string text = "vec4<f32>(";
    for (int e = 0; e < 4; ++e) text += (e ? ", " : "") + f(concat_text(value, ".", "xyzw"[e]));
    return text + ")";
  }
  /// An f32 that all threads get: the sum, or the largest (none of them NaN), of what each thread has of the type.
  std::string sum(std::string_view value);
  std::string largest(std::string_view value);
  /// A statement that stores one number of each row, of dtype F32.
  std::string store_of_row(const Ref& r, std::string_view value);
  void finish();

 private:
  std::string reduced(const char* name, const char* combine, std::string_view value);
  std::vector<int> outside_, inside_;
  Dim rows_ = 1, length_ = 1;
  bool fours_ = false;
  int threads_;
  std::string type_;
  KernelBuilder k_;
};

}  // namespace rlx::codegen
