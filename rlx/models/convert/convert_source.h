// Internal: reads tensors by rows and converts them to another type.
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

#include "rlx/formats/encoding_error.h"
#include "rlx/formats/gguf.h"
#include "rlx/models/convert/gguf_architectures.h"
#include "rlx/models/convert/model_convert.h"
#include "rlx/tensor/weight_loader.h"

namespace rlx {

/// One source's part of a tensor that is assembled from matrices: matrix e takes the rows [first_row + e * row_step, +
/// rows).
struct MatrixPart {
  std::string source;
  GgufType from = GgufType::F32;
  std::int64_t rows = 0, columns = 0;              // size of the source matrix
  std::int64_t first_row = 0, row_step = 0;        // in the source
  std::int64_t first_column = 0, column_step = 1;  // the columns that are taken
  bool turned = false;                             // then the part is transposed
};
/// A tensor that needs more than a row reordering. Matrix e is assembled from the parts: with alternating columns
/// (`woven`), or with their rows one after the other.
struct MatrixPlan {
  std::int64_t matrices = 0;  // 0: no assembly
  std::vector<MatrixPart> parts{};
  bool woven = false;
};
/// A planned conversion: source tensors and target tensor.
struct ConvertedTensor {
  std::vector<std::string> sources;  // source names: one, or equal parts one after the other
  std::string name;                  // in the target
  GgufType from = GgufType::F32, to = GgufType::F32;
  std::vector<std::int64_t> dims;       // dims of the elements
  std::vector<std::int64_t> row_order;  // the source row of each row; empty: the same
  std::int64_t first_row = 0;           // first row in the source
  float added = 0;                      // to each element
  MatrixPlan plan{};
  std::optional<float> number{};  // a constant value, where the source has no tensor
  bool changed() const { return !row_order.empty() || added != 0 || plan.matrices > 0; }
  std::int64_t rows() const;
  std::int64_t row_size() const { return dims.empty() ? 1 : dims.back(); }
  /// Bytes read from the source.
  std::size_t source_bytes() const;
};

/// Importance weights of matrix columns, by matrix name.
class ImportanceFile {
 public:
  ImportanceFile() = default;
  /// Errors: those of the readers; BadFile for weights that are negative or not finite.
  explicit ImportanceFile(const std::string& path);
  /// The weights of a matrix with rows of `row` elements, or of `matrices` matrices one after the other; empty when the
  /// file has none. Errors: BadFile for another count.
  std::span<const float> of(const std::string& name, std::int64_t row, std::int64_t matrices) const;
  bool empty() const { return path_.empty(); }

 private:
  std::string path_;
  std::map<std::string, std::vector<float>, std::less<>> weights_;
};

/// The GGUF type of a safetensors tensor. Errors: Unsupported for a dtype that GGUF lacks, naming the tensor.
GgufType gguf_type_of_view(const TensorView& view, const std::string& name);

/// Converts `t` to its new type, some rows at a time and on several threads, and passes the bytes to `write`. Returns
/// the error of the new type. Errors: BadFile naming the tensor and an element that is not finite where blocks are
/// quantized.
EncodingError convert_tensor(const WeightLoader& source, const ConvertedTensor& t, const ImportanceFile& importance,
                             int threads, const std::function<void(std::span<const std::byte>)>& write);

/// Row order of q or k between Hugging Face (half-split heads) and GGUF's llama (interleaved pairs), for heads of
/// `head_dim` rows.
std::vector<std::int64_t> head_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf);
/// Row order of a fused projection between q, k and v of each head in turn and all of q, k, v one after the other
/// (GGUF).
std::vector<std::int64_t> part_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf);

/// The resume key of a conversion: two conversions have the same key only when every byte of their results is the same.
/// It covers sources, types and options.
std::string conversion_key(const WeightLoader& source, std::span<const ConvertedTensor> tensors,
                           const ConvertOptions& options, std::string_view extra);

}  // namespace rlx
