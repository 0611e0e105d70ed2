// Row kernels: a workgroup reads the elements of some axes several times and reduces them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/codegen/walk.h"

namespace rlx::codegen {

/// Threads per row on a software rasterizer, which runs eight at a time.
inline constexpr int kRasteriserThreads = 8;

/// One kernel with a workgroup per row. The axes `inside` of `x` are a row. Threads process four consecutive elements
/// at once where the layout of all operands and results allows it.
class RowKernel {
 public:
  /// `others` are values with the dims of x that are read and written along with it.
  RowKernel(NodeKernels& node, std::string name, const Ref& x, std::vector<int> inside, const std::vector<Ref>& others);
  KernelBuilder& builder() { return k_; }
  /// "f32", or "vec4<f32>" with four neighbours.
  const std::string& type() const { return type_; }
  bool by_fours() const { return fours_; }
  const Dim& length() const { return length_; }
  /// A loop around `body`, which runs for each element, or for each group of four; the index `i` then counts groups.
  std::string each(std::string_view body) const;
  /// The element, or the four elements, of a value with the dims of x. `name` is unique in the kernel.
  std::string load(const Ref& r, const std::string& name);
  std::string store(const Ref& r, const std::string& name, std::string_view value);
  /// The same for a vector that is as long as a row.
  std::string load_vector(const Ref& r, const std::string& name);
  /// f(lane) for each lane of the type, as a value of the type.
  template <class F>
  std::string lanes(std::string_view value, F f) const {
    if (!fours_) return f(std::string(value));
    std::string text = "vec4<f32>(";
    for (int e = 0; e < 4; ++e) text += (e ? ", " : "") + f(concat_text(value, ".", "xyzw"[e]));
    return text + ")";
  }
  /// The sum, or the largest (none of them NaN), of the values of all threads and lanes. It is an f32 that all threads
  /// get.
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
