// Reads rows as F32, reads importance weights, and encodes on several threads.
#include "rlx/models/convert/convert_source.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>

#include "rlx/error.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/serial/fingerprint.h"
#include "rlx/tensor/block_search.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

constexpr std::size_t kSliceElements = std::size_t{1} << 22;  // elements of one iteration of all threads
constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

std::size_t bytes_of_row(GgufType type, std::int64_t elements) {
  const GgufTypeInfo& info = gguf_type_info(type);
  return static_cast<std::size_t>(elements / info.elements * info.bytes);
}

void encode(GgufType type, std::span<const float> x, std::span<const float> weights, std::byte* out) {
  const auto halves = [&](std::uint16_t (*convert)(float)) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint16_t bits = convert(x[i]);
      std::memcpy(out + 2 * i, &bits, 2);
    }
  };
  switch (type) {
    case GgufType::F32: std::memcpy(out, x.data(), x.size_bytes()); return;
    case GgufType::F16: return halves(float_to_f16_bits);
    case GgufType::BF16: return halves(float_to_bf16_bits);
    default: break;
  }
  const GgufTypeInfo& info = gguf_type_info(type);
  search_blocks(info.scheme, x, weights,
                {out, x.size() / static_cast<std::size_t>(info.elements) * static_cast<std::size_t>(info.bytes)});
}

// Calls f(first, last) for parts of [0, n) on `threads` threads. Throws the error of the first part that failed.
template <class F>
void in_parts(std::int64_t n, int threads, F f) {
  const std::int64_t parts = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(n, 1));
  std::vector<std::exception_ptr> failed(static_cast<std::size_t>(parts));
  const auto part = [&](std::int64_t i) {
    try {
      f(n * i / parts, n * (i + 1) / parts);
    } catch (...) {
      failed[static_cast<std::size_t>(i)] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (std::int64_t i = 1; i < parts; ++i) others.emplace_back(part, i);
  } catch (const std::system_error&) {  // no more threads: run the rest here
  }
  const auto started = static_cast<std::int64_t>(others.size());
  part(0);
  for (std::int64_t i = started + 1; i < parts; ++i) part(i);
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace

std::int64_t ConvertedTensor::rows() const {
  std::int64_t n = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) n *= dims[i];
  return n;
}

std::size_t ConvertedTensor::source_bytes() const {
  const auto bytes = [](GgufType type, std::int64_t elements) {
    const GgufTypeInfo& info = gguf_type_info(type);
    return static_cast<std::size_t>(elements) * static_cast<std::size_t>(info.bytes) /
           static_cast<std::size_t>(info.elements);
  };
  if (plan.matrices == 0) return bytes(from, rows() * row_size());
  std::size_t sum = 0;
  for (const MatrixPart& p : plan.parts) sum += bytes(p.from, plan.matrices * p.rows * p.columns);
  return sum;
}

ImportanceFile::ImportanceFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  const auto fail = [&](std::string_view name, const std::string& what) {
    throw Error(ErrorCode::BadFile, concat_text(path, ": importance of \"", name, "\": ", what),
                "give a vector of numbers of at least 0, one for each column of the matrix");
  };
  const auto add = [&](std::string name, std::vector<float> w) {
    for (const float v : w)
      if (!(v >= 0) || !std::isfinite(v)) fail(name, concat_text("a weight is ", static_cast<double>(v)));
    weights_.insert_or_assign(std::move(name), std::move(w));
  };
  if (path.size() > 5 && path.substr(path.size() - 5) == ".gguf") {
    const auto file = GgufFile::open(path);
    for (const GgufTensor& t : file->tensors()) {
      std::string name(t.name);
      if (name.ends_with(kCounts)) continue;
      const Tensor values = file->decoded(t.name);
      const std::span<const float> v = values.values<float>();
      std::vector<float> w(v.begin(), v.end());
      if (name.ends_with(kSums)) {
        name.resize(name.size() - kSums.size());
        const Tensor counts = file->decoded(name + std::string(kCounts));
        const std::int64_t n = counts.num_elements();
        if (n == 0 || values.num_elements() % n != 0)
          fail(name, concat_text(values.num_elements(), " sums for ", n, " counts"));
        const std::size_t each = w.size() / static_cast<std::size_t>(n);
        for (std::size_t i = 0; i < w.size(); ++i) {
          const double count = counts.at(static_cast<std::int64_t>(i / each));
          w[i] = count > 0 ? static_cast<float>(static_cast<double>(w[i]) / count) : 1;
        }
      }
      add(std::move(name), std::move(w));
    }
    return;
  }
  const auto file = SafetensorsFile::open(path);
  for (const std::string& name : file->names()) {
    const Tensor values = SafetensorsFile::tensor(file, name).cast(DType::F32);
    const std::span<const float> v = values.values<float>();
    add(name, std::vector<float>(v.begin(), v.end()));
  }
}

std::span<const float> ImportanceFile::of(const std::string& name, std::int64_t row, std::int64_t matrices) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) return {};
  const auto size = static_cast<std::int64_t>(found->second.size());
  if (size != row && size != row * matrices)
    throw Error(ErrorCode::BadFile, concat_text(path_, ": importance of \"", name, "\" has ", found->second.size(),
                                                " numbers, the matrix has ", row, " columns"));
  return found->second;
}

GgufType gguf_type_of_view(const TensorView& view, const std::string& name) {
  for (const GgufTypeInfo& t : gguf_types())
    if (t.dtype == view.dtype) return t.type;
  throw Error(ErrorCode::Unsupported,
              concat_text("tensor \"", name, "\" has the dtype ", dtype_name(view.dtype), ", which GGUF does not have"),
              "cast it first");
}

std::vector<std::int64_t> head_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  const std::int64_t half = head_dim / 2;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t head = r / head_dim, i = r % head_dim;
    const std::int64_t from = to_gguf ? i % 2 * half + i / 2 : i % half * 2 + i / half;
    order[static_cast<std::size_t>(r)] = head * head_dim + from;
  }
  return order;
}

std::vector<std::int64_t> part_row_order(std::int64_t rows, std::int64_t head_dim, bool to_gguf) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  const std::int64_t heads = rows / head_dim / 3;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t part = 0; part < 3; ++part)
      for (std::int64_t i = 0; i < head_dim; ++i) {
        const std::int64_t by_head = (h * 3 + part) * head_dim + i, by_part = (part * heads + h) * head_dim + i;
        order[static_cast<std::size_t>(to_gguf ? by_part : by_head)] = to_gguf ? by_head : by_part;
      }
  return order;
}

namespace {

// The bytes of a planned source, which therefore exists.
const std::byte* bytes_of_source(const WeightLoader& source, const std::string& name) {
  const std::optional<TensorView> found = source.find(name);
  check(found.has_value(), "a tensor that was planned is there");
  return static_cast<const std::byte*>(found->data);
}

// Decodes a row as F32.
void decode_row(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  if (type != GgufType::F64) return decode_gguf(type, bytes, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double v;
    std::memcpy(&v, bytes.data() + 8 * i, 8);
    out[i] = static_cast<float>(v);
  }
}

// Encodes rows in the new type.
class RowEncoder {
 public:
  RowEncoder(const ConvertedTensor& t, const ImportanceFile& importance, std::int64_t rows, std::int64_t row)
      : t_(t),
        row_(static_cast<std::size_t>(row)),
        bytes_(bytes_of_row(t.to, row)),
        makes_blocks_(!gguf_type_info(t.to).dtype),
        errors_(static_cast<std::size_t>(rows)) {
    const std::int64_t matrices = t.dims.size() > 2 ? rows / t.dims[t.dims.size() - 2] : 1;  // for example experts
    rows_of_matrix_ = rows / matrices;
    if (makes_blocks_) weights_ = importance.of(t.name, row, matrices);
  }
  std::size_t row_bytes() const { return bytes_; }
  // Encodes row `r` of the tensor. `from` names its position in the source, for errors.
  template <class From>
  void operator()(std::int64_t r, std::span<const float> x, std::byte* out, From from) const {
    if (makes_blocks_)
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!std::isfinite(x[i]))
          throw Error(ErrorCode::BadFile,
                      concat_text(from(), ": element ", i, " of row ", r, " is ", static_cast<double>(x[i]),
                                  ", which blocks of ", gguf_type_info(t_.to).name, " cannot hold"));
    // Weights for each matrix, or one set for all.
    const auto own = weights_.size() > row_ ? static_cast<std::size_t>(r / rows_of_matrix_) : 0;
    encode(t_.to, x, weights_.empty() ? weights_ : weights_.subspan(own * row_, row_), out);
    if (t_.to != GgufType::F32) errors_[static_cast<std::size_t>(r)] = encoding_error(t_.to, x, {out, bytes_});
  }
  // Of all rows that were encoded.
  EncodingError error() const {
    EncodingError out;
    for (const EncodingError& e : errors_) out += e;
    return out;
  }

 private:
  const ConvertedTensor& t_;
  std::size_t row_, bytes_;
  bool makes_blocks_;
  std::int64_t rows_of_matrix_ = 1;
  std::span<const float> weights_{};
  mutable std::vector<EncodingError> errors_;  // by row: threads encode different rows
};

// Assembles a tensor matrix by matrix, in F32.
EncodingError convert_matrices(const WeightLoader& source, const ConvertedTensor& t, const ImportanceFile& importance,
                               int threads, const std::function<void(std::span<const std::byte>)>& write) {
  const MatrixPlan& plan = t.plan;
  const std::int64_t row = t.row_size(), all = t.rows(), rows = all / plan.matrices;
  if (row == 0 || all == 0) return {};
  const RowEncoder encoder(t, importance, all, row);
  std::vector<float> taken, made(static_cast<std::size_t>(rows * row));
  std::vector<std::byte> out(static_cast<std::size_t>(rows) * encoder.row_bytes());
  for (std::int64_t e = 0; e < plan.matrices; ++e) {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < plan.parts.size(); ++k) {
      const MatrixPart& p = plan.parts[k];
      const std::size_t in_bytes = bytes_of_row(p.from, p.columns);
      const std::byte* from =
          bytes_of_source(source, p.source) + static_cast<std::size_t>(p.first_row + e * p.row_step) * in_bytes;
      taken.resize(static_cast<std::size_t>(p.rows * p.columns));
      in_parts(p.rows, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
          decode_row(
              p.from, {from + static_cast<std::size_t>(r) * in_bytes, in_bytes},
              std::span(taken).subspan(static_cast<std::size_t>(r * p.columns), static_cast<std::size_t>(p.columns)));
      });
      // Row a of the part's result, and the number of rows.
      const std::int64_t picked = p.columns / p.column_step, height = p.turned ? picked : p.rows,
                         width = p.turned ? p.rows : picked;
      const auto step = static_cast<std::int64_t>(plan.woven ? plan.parts.size() : 1);
      const std::int64_t offset = plan.woven ? static_cast<std::int64_t>(k) : 0;
      in_parts(height, threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t a = begin; a < end; ++a)
          for (std::int64_t b = 0; b < width; ++b) {
            const std::int64_t r = p.turned ? b : a, c = p.first_column + p.column_step * (p.turned ? a : b);
            made[static_cast<std::size_t>((first + a) * row + b * step + offset)] =
                taken[static_cast<std::size_t>(r * p.columns + c)];
          }
      });
      if (!plan.woven) first += height;
    }
    in_parts(rows, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        encoder(e * rows + r,
                std::span<const float>(made).subspan(static_cast<std::size_t>(r * row), static_cast<std::size_t>(row)),
                out.data() + static_cast<std::size_t>(r) * encoder.row_bytes(),
                [&] { return concat_text("tensor \"", t.name, "\", made of \"", plan.parts[0].source, "\""); });
    });
    write(out);
  }
  for (const MatrixPart& p : plan.parts) source.drop_all_pages(p.source);
  return encoder.error();
}

}  // namespace

EncodingError convert_tensor(const WeightLoader& source, const ConvertedTensor& t, const ImportanceFile& importance,
                             int threads, const std::function<void(std::span<const std::byte>)>& write) {
  if (t.plan.matrices > 0) return convert_matrices(source, t, importance, threads, write);
  if (t.number) {
    std::vector<std::byte> made(bytes_of_row(t.to, 1));
    RowEncoder(t, importance, 1, 1)(0, {&*t.number, 1}, made.data(), [&] { return t.name; });
    write(made);
    return {};
  }
  // In a one-dimensional tensor with a row order, each element is a row.
  const bool single = t.dims.size() < 2 && !t.row_order.empty();
  const std::int64_t row = single ? 1 : t.row_size(), rows = single ? t.row_size() : t.rows();
  if (row == 0 || rows == 0) return {};
  const std::size_t in_bytes = bytes_of_row(t.from, row);
  const auto parts = static_cast<std::int64_t>(t.sources.size());
  const std::int64_t rows_of_part = rows / parts;
  const auto offset_of = [&](std::int64_t r) {  // offset in its source, in bytes
    const std::int64_t from = t.row_order.empty() ? t.first_row + r : t.row_order[static_cast<std::size_t>(r)];
    return static_cast<std::size_t>(from) * in_bytes;
  };
  if (t.from == t.to && !t.changed()) {
    const std::size_t all = in_bytes * static_cast<std::size_t>(rows_of_part), slice = std::size_t{1} << 24;
    for (const std::string& name : t.sources) {
      const std::byte* from = bytes_of_source(source, name);
      for (std::size_t at = offset_of(0), end = at + all; at < end; at += slice) {
        const std::size_t now = std::min(slice, end - at);
        write({from + at, now});
        source.drop_pages(name, at, now);
      }
    }
    return {};
  }
  const RowEncoder encoder(t, importance, rows, row);
  const std::int64_t slice = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSliceElements) / row);
  std::vector<std::byte> made(static_cast<std::size_t>(std::min(slice, rows_of_part)) * encoder.row_bytes());
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::string& name = t.sources[static_cast<std::size_t>(part)];
    const std::byte* from = bytes_of_source(source, name);
    for (std::int64_t first = 0; first < rows_of_part; first += slice) {
      const std::int64_t now = std::min(slice, rows_of_part - first);
      in_parts(now, threads, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> x(static_cast<std::size_t>(row));
        for (std::int64_t r = begin; r < end; ++r) {
          const std::byte* in = from + offset_of(first + r);
          std::byte* out = made.data() + static_cast<std::size_t>(r) * encoder.row_bytes();
          if (t.from == t.to && t.added == 0) {
            std::memcpy(out, in, in_bytes);
            continue;
          }
          decode_row(t.from, {in, in_bytes}, x);
          if (t.added != 0)
            for (float& v : x) v += t.added;
          encoder(part * rows_of_part + first + r, x, out, [&] { return concat_text("tensor \"", name, "\""); });
        }
      });
      write({made.data(), static_cast<std::size_t>(now) * encoder.row_bytes()});
      if (t.row_order.empty()) source.drop_pages(name, offset_of(first), static_cast<std::size_t>(now) * in_bytes);
    }
    source.drop_all_pages(name);
  }
  return encoder.error();
}

std::string conversion_key(const WeightLoader& source, std::span<const ConvertedTensor> tensors,
                           const ConvertOptions& options, std::string_view extra) {
  std::string text =
      concat_text("conversion 2\n", extra, "\n", options.pre_tokenizer, "\n", options.split_max_bytes, "\n");
  for (const ConvertedTensor& t : tensors) {
    text +=
        concat_text(t.name, " ", gguf_type_info(t.from).name, " ", gguf_type_info(t.to).name, " ", dims_text(t.dims));
    if (t.number) text += concat_text(" ", *t.number);
    std::vector<std::string> sources = t.sources;
    for (const MatrixPart& p : t.plan.parts) sources.push_back(p.source);
    for (const std::string& name : sources) {
      text += " " + name;
      if (const auto id = source.identity(name))
        text += concat_text(" ", id->device, " ", id->inode, " ", id->size, " ", id->mtime_ns, " ", id->header);
    }
    text += '\n';
  }
  if (!options.importance.empty()) {
    const FileStatus s = MappedFile::open(options.importance).status();
    text += concat_text(s.device, " ", s.inode, " ", s.size, " ", s.mtime_ns);
  }
  return fingerprint_bytes(text.data(), text.size()).text().substr(0, 12);
}

}  // namespace rlx
