// Internal: tensors to be converted, read in rows and written in another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/formats/gguf.h"
#include "rlx/models/convert/gguf_architectures.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// What a tensor made of matrices takes from one source: of matrix e the rows [first_row + e * row_step, + rows).
struct MatrixPart {
  std::string source;
  GgufType from = GgufType::F32;
  std::int64_t rows = 0, columns = 0;              // of the source's matrix
  std::int64_t first_row = 0, row_step = 0;        // in the source
  std::int64_t first_column = 0, column_step = 1;  // which of its columns are taken
  bool turned = false;                             // and then it is transposed
};
/// A tensor of which more changes than the places of rows. Matrix e is made of the parts, whose columns come in turn
/// (`woven`), or whose rows follow each other.
struct MatrixPlan {
  std::int64_t matrices = 0;  // 0: it is not made so
  std::vector<MatrixPart> parts{};
  bool woven = false;
};
/// A tensor on its way: where it comes from, what it becomes.
struct ConvertedTensor {
  std::vector<std::string> sources;  // its names there: of one, or of equal parts one after the other
  std::string name;                  // in the target
  GgufType from = GgufType::F32, to = GgufType::F32;
  std::vector<std::int64_t> dims;       // of its elements
  std::vector<std::int64_t> row_order;  // the source's row for each row; empty: the same
  std::int64_t first_row = 0;           // of the source, where it begins
  float added = 0;                      // to each element
  MatrixPlan plan{};
  std::optional<float> number{};  // what it holds, where no tensor of the source does
  bool changed() const { return !row_order.empty() || added != 0 || plan.matrices > 0; }
  std::int64_t rows() const;
  std::int64_t row_size() const { return dims.empty() ? 1 : dims.back(); }
  /// Bytes that are read for it.
  std::size_t source_bytes() const;
};

/// Columns' weights by names of matrices.
class ImportanceFile {
 public:
  ImportanceFile() = default;
  /// Errors: those of the readers; BadFile for weights that are negative or no numbers.
  explicit ImportanceFile(const std::string& path);
  /// Those of a matrix with rows of `row` elements, or of each of `matrices` one after the other; none when the file
  /// has none. Errors: BadFile for another count.
  std::span<const float> of(const std::string& name, std::int64_t row, std::int64_t matrices) const;
  bool empty() const { return path_.empty(); }

 private:
  std::string path_;
  std::map<std::string, std::vector<float>, std::less<>> weights_;
};

/// The type of a tensor of a safetensors file. Errors: Unsupported for one that GGUF lacks, naming the tensor.
GgufType gguf_type_of_view(const TensorView& view, const std::string& name);

/// Makes the bytes of `t` in its new type, some rows at a time and on several threads, and gives them to `write`.
/// Errors: BadFile naming the tensor and the element that is no finite number where blocks are made.
void convert_tensor(const WeightLoader& source, const ConvertedTensor& t, const ImportanceFile& importance, int threads,
                    const std::function<void(std::span<const std::byte>)>& write);

/// Rows of q or k between Hugging Face's order (halves of a head, one after the other) and GGUF's llama (pairs), for
/// heads of `head_dim` rows.
std::vector<std::int64_t> head_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf);
/// Rows of a fused projection between q, k and v of each head in turn and all of q, all of k, all of v (GGUF).
std::vector<std::int64_t> part_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf);

/// Text that two conversions share only when every byte of their results is the same: sources, types, options.
std::string conversion_key(const WeightLoader& source, std::span<const ConvertedTensor> tensors,
                           const ConvertOptions& options, std::string_view extra);

}  // namespace rlx
