// npy: the header (a Python dictionary in text) and the element data.
#include "rlx/formats/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/error.h"
#include "rlx/formats/mapped_file.h"
#include "rlx/tensor/out_of_memory.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "npy data is written as it lies in memory");

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void fail(const std::string& source, const std::string& message, std::string hint = {}) {
  throw Error(ErrorCode::BadFile, concat_text(source, ": ", message), std::move(hint));
}

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> dims;
  bool has_descr = false, has_order = false, has_shape = false;
};

// Parses the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Headers hold no other Python.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset, const std::string& source)
      : text_(text), offset_(offset), source_(source) {}

  NpyHeader parse() {
    NpyHeader h;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '[') {
          throw Error(ErrorCode::Unsupported,
                      concat_text(source_, ": the array has a structured dtype, with several fields"),
                      "save each field as a separate array");
        }
        h.descr = string();
        h.has_descr = true;
      } else if (key == "fortran_order") {
        h.fortran_order = boolean();
        h.has_order = true;
      } else if (key == "shape") {
        h.dims = tuple();
        h.has_shape = true;
      } else {
        stop(concat_text("one of 'descr', 'fortran_order' and 'shape', not '", key, "'"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) stop("the end of the header");
    if (!h.has_descr || !h.has_order || !h.has_shape) {
      fail(source_, concat_text("the header lacks '",
                                !h.has_descr   ? "descr"
                                : !h.has_order ? "fortran_order"
                                               : "shape",
                                "'"));
    }
    return h;
  }

 private:
  [[noreturn]] void stop(const std::string& expected) const {
    fail(source_, concat_text("bad header at byte ", offset_ + at_, ": expected ", expected));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) stop(concat_text("'", c, "'"));
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') stop("a string in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) stop("a string with its closing quote");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    stop("True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!accept(')')) {
      out.push_back(integer());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }
  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    const std::size_t start = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        stop("a dimension that fits 64 bits");
      }
    }
    if (at_ == start) stop("a dimension of 0 or more");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // long integers of Python 2
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t offset_;  // offset of text_ in the file
  const std::string& source_;
};

struct StoredElement {
  DType dtype;
  bool swapped;  // bytes are in big-endian order
};

StoredElement parse_descr(const std::string& descr, const std::string& source) {
  struct Code {
    std::string_view text;
    DType dtype;
  };
  static constexpr Code kCodes[] = {{"b1", DType::Bool}, {"i1", DType::I8},   {"i2", DType::I16}, {"i4", DType::I32},
                                    {"i8", DType::I64},  {"u1", DType::U8},   {"u2", DType::U16}, {"u4", DType::U32},
                                    {"u8", DType::U64},  {"f2", DType::F16},  {"f4", DType::F32}, {"f8", DType::F64},
                                    {"c8", DType::C64},  {"c16", DType::C128}};
  std::string_view code = descr;
  const char order = code.empty() ? '\0' : code[0];
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  if (has_order) code.remove_prefix(1);
  for (const Code& c : kCodes) {
    if (c.text == code) return {c.dtype, order == '>' && size_bytes(c.dtype) > 1};
  }
  throw Error(ErrorCode::Unsupported, concat_text(source, ": the element type '", descr, "' is not supported"),
              "rlx reads booleans, integers, f2, f4, f8 and complex numbers; convert the array with astype");
}

std::string_view code_of(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "|b1";
    case DType::I8: return "|i1";
    case DType::I16: return "<i2";
    case DType::I32: return "<i4";
    case DType::I64: return "<i8";
    case DType::U8: return "|u1";
    case DType::U16: return "<u2";
    case DType::U32: return "<u4";
    case DType::U64: return "<u8";
    case DType::F16: return "<f2";
    case DType::F32: return "<f4";
    case DType::F64: return "<f8";
    case DType::C64: return "<c8";
    case DType::C128: return "<c16";
    default:
      throw Error(ErrorCode::Unsupported, concat_text("NumPy has no dtype ", dtype_name(dtype)),
                  "cast to f32 before writing npy");
  }
}

// Copies elements in column-major order into row-major order.
void copy_transposed(const std::byte* from, std::byte* to, const std::vector<std::int64_t>& dims, std::size_t width) {
  std::vector<std::int64_t> index(dims.size(), 0);
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    strides[axis] = count;
    count *= dims[axis];
  }
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * width, from + static_cast<std::size_t>(offset) * width, width);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < dims[axis]) break;
      offset -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

void swap_bytes(std::byte* data, std::size_t size, std::size_t width) {
  for (std::size_t at = 0; at < size; at += width) std::reverse(data + at, data + at + width);
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, const std::string& source) try {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic) {
    fail(source, "not an npy file: it does not start with \\x93NUMPY", "save the array with numpy.save");
  }
  if (text.size() < 10) fail(source, concat_text("the file has ", text.size(), " bytes and ends inside its header"));
  const int major = static_cast<unsigned char>(text[6]), minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw Error(ErrorCode::Unsupported, concat_text(source, ": npy version ", major, ".", minor),
                "rlx reads versions 1.0, 2.0 and 3.0");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  std::uint32_t length = 0;
  if (text.size() >= start) std::memcpy(&length, text.data() + 8, length_bytes);
  if (text.size() < start || length > text.size() - start) {
    fail(source, concat_text("the header needs ", start + length, " bytes, but the file has ", text.size()),
         "the file is cut short");
  }
  const NpyHeader header = HeaderParser(text.substr(start, length), start, source).parse();
  const StoredElement element = parse_descr(header.descr, source);
  if (header.dims.size() > 64)
    fail(source, concat_text("the array has ", header.dims.size(), " dimensions; NumPy allows at most 64"));

  std::int64_t count = 1;
  bool too_large = false;
  for (const std::int64_t d : header.dims) too_large |= __builtin_mul_overflow(count, d, &count);
  if (std::find(header.dims.begin(), header.dims.end(), 0) != header.dims.end()) {
    count = 0;
  } else if (too_large || count > (std::int64_t{1} << 56)) {
    fail(source, concat_text("the shape ", dims_text(header.dims), " has more elements than any file can hold"));
  }
  const std::size_t size = size_bytes(element.dtype, count), data_start = start + length;
  if (text.size() - data_start != size) {
    fail(source,
         concat_text("the shape ", dims_text(header.dims), " of '", header.descr, "' needs ", size,
                     " bytes of data from byte ", data_start, ", but ", text.size() - data_start, " follow"),
         text.size() - data_start < size ? "the file is cut short" : "the file holds more than one array");
  }
  Tensor out = Tensor::zeros(Shape(Dims(header.dims.begin(), header.dims.end()), element.dtype));
  if (size == 0) return out;
  const std::byte* data = bytes.data() + data_start;
  std::byte* to = out.mutable_data();
  if (header.fortran_order && header.dims.size() > 1) {
    copy_transposed(data, to, header.dims, size_bytes(element.dtype));
  } else {
    std::memcpy(to, data, size);
  }
  if (element.swapped)
    swap_bytes(to, size, is_complex(element.dtype) ? size_bytes(element.dtype) / 2 : size_bytes(element.dtype));
  if (element.dtype == DType::Bool) {  // NumPy reads any nonzero byte as true; C++ only 1
    for (std::size_t i = 0; i < size; ++i) to[i] = std::byte{static_cast<unsigned>(to[i]) != 0};
  }
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("parse_npy");
}

Tensor read_npy(const std::string& path) try {
  const MappedFile file = MappedFile::open(path, MapAdvice::Sequential);
  const GuardedReads reads;
  Tensor t = parse_npy(file.bytes(), path);
  reads.check(file.bytes().data());
  return t;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("read_npy");
}

std::string npy_header(DType dtype, std::span<const std::int64_t> dims) {
  std::string dictionary = concat_text("{'descr': '", code_of(dtype), "', 'fortran_order': False, 'shape': (");
  for (std::size_t i = 0; i < dims.size(); ++i)
    dictionary += concat_text(i == 0 ? "" : " ", dims[i], i + 1 < dims.size() || i == 0 ? "," : "");
  dictionary += "), }";
  // Version 1.0 stores the length in 16 bits. The data must start at a multiple of 64.
  const bool long_header = dictionary.size() + 64 + 10 > 0xFFFF;
  const std::size_t start = long_header ? 12 : 10;
  const std::size_t total = (start + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(total - start - dictionary.size() - 1, ' ');
  dictionary += '\n';
  const std::uint32_t length = static_cast<std::uint32_t>(dictionary.size());
  char bytes[4];
  std::memcpy(bytes, &length, 4);
  std::string out(kMagic);
  out += static_cast<char>(long_header ? 2 : 1);
  out += '\0';
  out.append(bytes, long_header ? 4 : 2);
  return out + dictionary;
}

namespace {
void require_value(const Tensor& tensor) {
  if (tensor.empty()) throw Error(ErrorCode::InvalidArgument, "cannot write an empty tensor: it has no value");
}
}  // namespace

std::string npy_bytes(const Tensor& tensor) try {
  require_value(tensor);
  std::string out = npy_header(tensor.dtype(), tensor.dims());
  out.append(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
  return out;
} catch (const std::bad_alloc&) {
  throw_out_of_memory("npy_bytes");
}

void write_npy(const std::string& path, const Tensor& tensor) try {
  require_value(tensor);
  const std::string header = npy_header(tensor.dtype(), tensor.dims());
  const std::string_view parts[] = {header, {reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes()}};
  write_file(path, parts);
} catch (const std::bad_alloc&) {
  throw_out_of_memory("write_npy");
}

}  // namespace rlx
