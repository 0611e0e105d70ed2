// Reading rows as F32, importance weights, and encoding on several threads.
#include "rlx/formats/convert_source.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <thread>

#include "rlx/error.h"
#include "rlx/formats/safetensors.h"
#include "rlx/ir/fingerprint.h"
#include "rlx/tensor/block_search.h"
#include "rlx/tensor/half.h"

namespace rlx {
namespace {

constexpr std::size_t kSliceElements = std::size_t{1} << 22;  // of one turn of all threads
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

// Calls f(first, last) for parts of [0, n) on `threads` threads and throws what the first of them threw.
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
  } catch (const std::system_error&) {  // no more threads: the rest is done here
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

ImportanceFile::ImportanceFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  const auto fail = [&](std::string_view name, const std::string& what) {
    throw Error(ErrorCode::BadFile, concat_text(path, ": importance of \"", name, "\": ", what),
                "it is a vector of numbers from 0 on, one for each column of the matrix");
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
              concat_text("tensor \"", name, "\" has the dtype ", dtype_name(view.dtype), ", which GGUF lacks"),
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

void convert_tensor(const WeightLoader& source, const ConvertedTensor& t, const ImportanceFile& importance, int threads,
                    const std::function<void(std::span<const std::byte>)>& write) {
  const std::optional<TensorView> found = source.find(t.source);
  check(found.has_value(), "a tensor that was planned is there");
  const auto* from = static_cast<const std::byte*>(found->data);
  // One dimension of which rows change their order has elements for rows.
  const bool vector = t.dims.size() < 2;
  const std::int64_t row = vector && !t.row_order.empty() ? 1 : t.row_size(),
                     rows = vector && !t.row_order.empty() ? t.row_size() : t.rows();
  if (row == 0 || rows == 0) return;
  const std::size_t in_bytes = bytes_of_row(t.from, row), out_bytes = bytes_of_row(t.to, row);
  const auto source_row = [&](std::int64_t r) {
    return t.row_order.empty() ? r : t.row_order[static_cast<std::size_t>(r)];
  };
  if (t.from == t.to && !t.changed()) {
    const std::size_t all = in_bytes * static_cast<std::size_t>(rows), slice = std::size_t{1} << 24;
    for (std::size_t at = 0; at < all; at += slice) {
      const std::size_t now = std::min(slice, all - at);
      write({from + at, now});
      source.drop_pages(t.source, at, now);
    }
    return;
  }
  const bool makes_blocks = !gguf_type_info(t.to).dtype;
  const std::int64_t matrices = t.dims.size() > 2 ? rows / t.dims[t.dims.size() - 2] : 1;  // of experts, for example
  const std::span<const float> weights = makes_blocks ? importance.of(t.name, row, matrices) : std::span<const float>();
  const std::int64_t slice = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSliceElements) / row);
  std::vector<std::byte> made(static_cast<std::size_t>(std::min(slice, rows)) * out_bytes);
  for (std::int64_t first = 0; first < rows; first += slice) {
    const std::int64_t now = std::min(slice, rows - first);
    in_parts(now, threads, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> x(static_cast<std::size_t>(row));
      for (std::int64_t r = begin; r < end; ++r) {
        const std::byte* in = from + static_cast<std::size_t>(source_row(first + r)) * in_bytes;
        std::byte* out = made.data() + static_cast<std::size_t>(r) * out_bytes;
        if (t.from == t.to && t.added == 0) {
          std::memcpy(out, in, in_bytes);
          continue;
        }
        if (t.from == GgufType::F64) {
          for (std::size_t i = 0; i < x.size(); ++i) {
            double v;
            std::memcpy(&v, in + 8 * i, 8);
            x[i] = static_cast<float>(v);
          }
        } else {
          decode_gguf(t.from, {in, in_bytes}, x);
        }
        if (t.added != 0)
          for (float& v : x) v += t.added;
        if (makes_blocks)
          for (std::size_t i = 0; i < x.size(); ++i)
            if (!std::isfinite(x[i]))
              throw Error(ErrorCode::BadFile,
                          concat_text("tensor \"", t.source, "\": element ", i, " of row ", source_row(first + r),
                                      " is ", static_cast<double>(x[i]), ", which blocks of ",
                                      gguf_type_info(t.to).name, " cannot hold"));
        // Of each matrix, or one set for all.
        const auto own = weights.size() > x.size() ? static_cast<std::size_t>((first + r) / (rows / matrices)) : 0;
        encode(t.to, x, weights.empty() ? weights : weights.subspan(own * x.size(), x.size()), out);
      }
    });
    write({made.data(), static_cast<std::size_t>(now) * out_bytes});
    if (t.row_order.empty())
      source.drop_pages(t.source, static_cast<std::size_t>(first) * in_bytes, static_cast<std::size_t>(now) * in_bytes);
  }
  source.drop_all_pages(t.source);
}

std::string conversion_key(const WeightLoader& source, std::span<const ConvertedTensor> tensors,
                           const ConvertOptions& options, std::string_view extra) {
  std::string text = concat_text("conversion 1\n", extra, "\n", options.pre_tokenizer, "\n");
  for (const ConvertedTensor& t : tensors) {
    text += concat_text(t.source, " ", t.name, " ", gguf_type_info(t.from).name, " ", gguf_type_info(t.to).name, " ",
                        dims_text(t.dims));
    if (const auto id = source.identity(t.source))
      text += concat_text(" ", id->device, " ", id->inode, " ", id->size, " ", id->mtime_ns, " ", id->header);
    text += '\n';
  }
  if (!options.importance.empty()) {
    const FileStatus s = MappedFile::open(options.importance).status();
    text += concat_text(s.device, " ", s.inode, " ", s.size, " ", s.mtime_ns);
  }
  return fingerprint_bytes(text.data(), text.size()).text().substr(0, 12);
}

}  // namespace rlx
