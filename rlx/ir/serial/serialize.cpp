// Writes and reads the binary encoding of graphs.
#include "rlx/ir/serial/serialize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "rlx/base/forks.h"
#include "rlx/base/printable.h"
#include "rlx/ir/op_def.h"
#include "rlx/ir/rewrite/bodies.h"
#include "rlx/ir/serial/fingerprint.h"

namespace rlx {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are stored as they lie in memory");

constexpr char kMagic[8] = {'R', 'L', 'X', 'G', 'R', 'A', 'P', 'H'};
constexpr std::uint32_t kSourcesFollow = 0x534d5953;  // "SYMS": the mark before the list of symbol sources, which
                                                      // follows a graph that has any
constexpr std::size_t kSizeAt = sizeof kMagic + sizeof kGraphBytesVersion;
constexpr std::size_t kMaxStoredRank = 32;  // of a stored shape

// -- writing --

class Encoder {
 public:
  Encoder(ByteSink& sink, EncodeParts parts) : sink_(sink), parts_(parts) {}
  ~Encoder() { flush(); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void graph(const Graph& g) {
    bool all = parts_ == EncodeParts::All;
    if (all) string(g.name());
    size(g.symbols().size());
    for (const auto& [name, info] : g.symbols()) {
      string(name);
      i64(info.min);
      i64(info.max);
      i64(info.divisor);
    }
    size(g.num_nodes());
    const bool outermost = depth_++ == 0;
    for (const Node& n : g.nodes()) {
      string(op_def(n.kind()).name);
      size(n.inputs.size());
      for (Value v : n.inputs) value(v);
      if (outermost && parts_ == EncodeParts::Structure && n.kind() == OpKind::Constant) {
        shapes(n);
        continue;
      }
      attributes(n.op);
      shapes(n);
      if (all) origin(n.origin);
    }
    --depth_;
    size(g.outputs().size());
    for (Value v : g.outputs()) value(v);
    size(g.state_updates().size());
    for (const auto& u : g.state_updates()) {
      string(u.name);
      value(u.value);
    }
    if (g.symbol_sources().empty()) return;  // files of older versions end here too
    size(kSourcesFollow);
    size(g.symbol_sources().size());
    for (const auto& [symbol, source] : g.symbol_sources()) {
      string(symbol);
      value(source);
    }
  }

  void node_content(const Node& n) {
    string(op_def(n.kind()).name);
    attributes(n.op);
    shapes(n);
  }

 private:
  static constexpr std::size_t kFlushAt = 1 << 16;

  void attributes(const OpBox& op) {
    std::span<const AttrField> fields = attr_fields(op.kind());
    size(fields.size());
    for (const AttrField& f : fields) attribute(f, f.get(op.data()));
  }
  void shapes(const Node& n) {
    size(n.shapes.size());
    for (const Shape& s : n.shapes) shape(s);
  }

  void flush() {
    if (!buffer_.empty()) sink_.write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void raw(const void* data, std::size_t n) {
    if (n >= kFlushAt) {
      flush();
      sink_.write(data, n);
      return;
    }
    const auto* p = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), p, p + n);
    if (buffer_.size() >= kFlushAt) flush();
  }
  void u8(std::uint8_t v) { raw(&v, 1); }
  void u32(std::uint32_t v) { raw(&v, 4); }
  void i64(std::int64_t v) { raw(&v, 8); }
  void f64(double v) { raw(&v, 8); }
  void size(std::size_t n) {
    if (n > 0xffffffffu)
      throw Error(ErrorCode::Unsupported, concat_text("a list of ", n, " entries is too long for the binary form"));
    u32(static_cast<std::uint32_t>(n));
  }
  void string(std::string_view s) {
    size(s.size());
    raw(s.data(), s.size());
  }
  void value(Value v) {
    u32(v.node.index);
    u32(v.result);
  }
  void dim(const Dim& d) {
    u8(d.is_static() ? 0 : 1);
    if (d.is_static())
      i64(d.value());
    else
      string(d.text());
  }
  void dims(const Dims& d) {
    size(d.size());
    for (const Dim& e : d) dim(e);
  }
  void shape(const Shape& s) {
    string(dtype_name(s.dtype()));
    dims(s.dims());
  }
  void tensor(const Tensor& t) {
    u8(t.empty() ? 0 : 1);
    if (t.empty()) return;
    shape(t.shape());
    raw(t.data(), t.size_bytes());
  }
  void enumerator(const AttrField& f, std::int64_t v) {
    if (v < 0 || static_cast<std::size_t>(v) >= f.enum_names.size())
      throw Error(ErrorCode::InvalidArgument, concat_text("attribute '", f.name, "' is out of range: ", v));
    string(f.enum_names[static_cast<std::size_t>(v)]);
  }
  void attribute(const AttrField& f, const AttrValue& v) {
    string(f.name);
    u8(static_cast<std::uint8_t>(f.type));
    if (is_optional(f.type)) {
      bool set = !std::holds_alternative<std::monostate>(v);
      u8(set ? 1 : 0);
      if (!set) return;
    }
    switch (f.type) {
      case AttrType::Bool:
      case AttrType::OptBool: u8(std::get<bool>(v) ? 1 : 0); break;
      case AttrType::I64:
      case AttrType::OptI64: i64(std::get<std::int64_t>(v)); break;
      case AttrType::F64:
      case AttrType::OptF64: f64(std::get<double>(v)); break;
      case AttrType::Enum:
      case AttrType::OptEnum: enumerator(f, std::get<std::int64_t>(v)); break;
      // The stored bits count operands by position. This stays valid, because new operands are only appended to an op's
      // definition.
      case AttrType::Operands: u32(static_cast<std::uint32_t>(std::get<std::int64_t>(v))); break;
      case AttrType::String: string(std::get<std::string>(v)); break;
      case AttrType::DType:
      case AttrType::OptDType: string(dtype_name(std::get<DType>(v))); break;
      case AttrType::DimList: dims(std::get<Dims>(v)); break;
      case AttrType::I64List:
        size(std::get<std::vector<std::int64_t>>(v).size());
        for (std::int64_t e : std::get<std::vector<std::int64_t>>(v)) i64(e);
        break;
      case AttrType::F64List:
        size(std::get<std::vector<double>>(v).size());
        for (double e : std::get<std::vector<double>>(v)) f64(e);
        break;
      case AttrType::EnumList:
        size(std::get<std::vector<std::int64_t>>(v).size());
        for (std::int64_t e : std::get<std::vector<std::int64_t>>(v)) enumerator(f, e);
        break;
      case AttrType::Bytes:
        size(std::get<std::vector<std::byte>>(v).size());
        raw(std::get<std::vector<std::byte>>(v).data(), std::get<std::vector<std::byte>>(v).size());
        break;
      case AttrType::Tensor: tensor(std::get<Tensor>(v)); break;
      case AttrType::Body:
      case AttrType::OptBody: {
        const auto& body = std::get<Subgraph>(v);
        u8(body ? 1 : 0);
        if (body) graph(*body);
        break;
      }
    }
  }
  void origin(const Origin& o) {
    string(o.label);
    string(o.loc.file ? o.loc.file : "");
    i64(o.loc.line);
    string(o.pass);
    size(o.from.size());
    for (const std::string& f : o.from) string(f);
  }

  ByteSink& sink_;
  EncodeParts parts_;
  int depth_ = 0;  // of the graph that is being written, in bodies of control flow
  std::vector<std::byte> buffer_;
};

// -- reading --

// File names of source lines live as long as the process, like string literals. The pool is bounded, because a hostile
// file could otherwise fill memory through it.
const char* interned(const std::string& s) {
  constexpr std::size_t kMaxNames = 4096, kMaxLength = 512;
  static auto& mutex = *new ProcessMutex;
  static auto* names = new std::set<std::string>();
  if (s.empty() || s.size() > kMaxLength) return "";
  std::lock_guard lock(mutex);
  auto it = names->find(s);
  if (it != names->end()) return it->c_str();
  return names->size() < kMaxNames ? names->insert(s).first->c_str() : "";
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  Graph whole() {
    check_header();
    at_ = kGraphBytesHeaderSize;
    Graph g = graph(0);
    if (at_ != bytes_.size()) fail(concat_text(bytes_.size() - at_, " extra bytes follow the graph"));
    return g;
  }

 private:
  std::string where(std::size_t at) const { return concat_text(file_, ", byte ", at); }
  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw Error(Diagnostic{ErrorCode::BadFile, std::move(message), where(at_), std::move(hint)});
  }
  template <class F>
  auto at_position(F f) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.code() == ErrorCode::Internal || e.code() == ErrorCode::BadFile || e.code() == ErrorCode::OutOfMemory)
        throw;
      fail(e.diagnostic().message, e.diagnostic().hint);
    }
  }

  // True when the bytes after the header have the size and the checksum of the header.
  bool is_whole() const {
    if (bytes_.size() < kGraphBytesHeaderSize) return false;
    const std::vector<std::byte> header = graph_bytes_header(bytes_.subspan(kGraphBytesHeaderSize));
    return std::memcmp(bytes_.data() + kSizeAt, header.data() + kSizeAt, kGraphBytesHeaderSize - kSizeAt) == 0;
  }

  void check_header() {
    constexpr std::string_view kAgain = "copy or write the file again";
    if (bytes_.size() < sizeof kMagic || std::memcmp(bytes_.data(), kMagic, sizeof kMagic) != 0) {
      if (is_whole()) fail("the file is damaged: it does not start with RLXGRAPH", std::string(kAgain));
      fail("these bytes are not an rlx graph, or are damaged: they do not start with RLXGRAPH");
    }
    at_ = bytes_.size();
    if (at_ < kGraphBytesHeaderSize) fail("the file is damaged: it ends in its header", std::string(kAgain));
    at_ = sizeof kMagic;
    const auto version = u32("the version");
    if (version != kGraphBytesVersion) {
      at_ = sizeof kMagic;
      if (is_whole()) fail(concat_text("the file is damaged: its version is ", version), std::string(kAgain));
      fail(concat_text("graph format version ", version, " is not known; this build reads version ", kGraphBytesVersion,
                       version < kGraphBytesVersion ? " (the first with a checksum)" : ""),
           "convert the graph to text with the rlx that wrote it");
    }
    const auto size = plain<std::uint64_t>("the size");
    at_ = bytes_.size();
    const std::uint64_t there = bytes_.size() - kGraphBytesHeaderSize;
    if (there != size)
      fail(concat_text("the file is damaged: ", there, " bytes follow the header, but the header says ", size),
           std::string(kAgain));
    at_ = kGraphBytesHeaderSize;
    if (!is_whole()) fail("the file is damaged: its checksum does not match its content", std::string(kAgain));
  }

  std::span<const std::byte> take(std::size_t n, std::string_view what) {
    if (n > bytes_.size() - at_)
      fail(concat_text("the bytes end inside ", what, ": ", n, " are needed, ", bytes_.size() - at_, " are left"));
    std::span<const std::byte> s = bytes_.subspan(at_, n);
    at_ += n;
    return s;
  }
  template <class T>
  T plain(std::string_view what) {
    T v;
    std::memcpy(&v, take(sizeof v, what).data(), sizeof v);
    return v;
  }
  std::uint8_t u8(std::string_view what) { return plain<std::uint8_t>(what); }
  std::uint32_t u32(std::string_view what) { return plain<std::uint32_t>(what); }
  std::int64_t i64(std::string_view what) { return plain<std::int64_t>(what); }
  bool flag(std::string_view what) {
    auto v = u8(what);
    if (v > 1) fail(concat_text(what, " is ", int{v}, ", expected 0 or 1"));
    return v != 0;
  }
  // A list length. Every entry takes at least `entry_bytes`, so a hostile length allocates nothing.
  std::size_t size(std::size_t entry_bytes, std::string_view what) {
    std::size_t n = u32(what);
    if (n > (bytes_.size() - at_) / entry_bytes)
      fail(concat_text(what, " has ", n, " entries, more than the bytes hold"));
    return n;
  }
  std::string string(std::string_view what) {
    std::span<const std::byte> s = take(size(1, what), what);
    return std::string(reinterpret_cast<const char*>(s.data()), s.size());
  }

  Dim dim() {
    if (!flag("a dimension's kind")) return Dim(i64("a dimension"));
    std::string text = string("a dimension");
    auto d = text.size() <= 4096 ? parse_dim(text) : std::nullopt;
    if (!d) fail(concat_text("'", printable(text, 60), "' is not a dimension"));
    return *d;
  }
  Dims dims() {
    std::size_t n = size(2, "a shape");
    if (n > kMaxStoredRank) fail(concat_text("a shape of rank ", n, ", more than ", kMaxStoredRank));
    Dims out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(dim());
    return out;
  }
  DType dtype() {
    std::string name = string("a dtype");
    auto t = parse_dtype(name);
    if (!t) fail(concat_text("'", printable(name, 40), "' is not a dtype"));
    return *t;
  }
  Shape shape() {
    DType t = dtype();
    return Shape(dims(), t);
  }
  Tensor tensor() {
    if (!flag("a tensor's presence")) return {};
    Shape s = shape();
    if (!s.is_static()) fail(concat_text("a tensor has the symbolic shape ", s));
    std::size_t n = at_position([&] { return s.size_bytes(); });
    std::span<const std::byte> data = take(n, "a tensor");
    return Tensor::copy_of(data.data(), s);
  }
  std::int64_t enumerator(const AttrField& f) {
    std::string name = string("an enumerator");
    for (std::size_t i = 0; i < f.enum_names.size(); ++i)
      if (f.enum_names[i] == name) return static_cast<std::int64_t>(i);
    fail(concat_text("'", printable(name, 40), "' is not a value of ", f.name));
  }
  template <class T, class F>
  std::vector<T> list(std::size_t entry_bytes, F element) {
    std::vector<T> out;
    std::size_t n = size(entry_bytes, "a list");
    out.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.push_back(element());
    return out;
  }
  AttrValue attribute(const AttrField& f, int depth) {
    if (is_optional(f.type) && !flag("an optional attribute")) return std::monostate{};
    switch (f.type) {
      case AttrType::Bool:
      case AttrType::OptBool: return flag(f.name);
      case AttrType::I64:
      case AttrType::OptI64: return i64(f.name);
      case AttrType::F64:
      case AttrType::OptF64: return plain<double>(f.name);
      case AttrType::Enum:
      case AttrType::OptEnum: return enumerator(f);
      case AttrType::Operands: return std::int64_t{u32(f.name)};
      case AttrType::String: return string(f.name);
      case AttrType::DType:
      case AttrType::OptDType: return dtype();
      case AttrType::DimList: return dims();
      case AttrType::I64List: return list<std::int64_t>(8, [&] { return i64(f.name); });
      case AttrType::F64List: return list<double>(8, [&] { return plain<double>(f.name); });
      case AttrType::EnumList: return list<std::int64_t>(4, [&] { return enumerator(f); });
      case AttrType::Bytes: {
        std::span<const std::byte> s = take(size(1, f.name), f.name);
        return std::vector<std::byte>(s.begin(), s.end());
      }
      case AttrType::Tensor: return tensor();
      case AttrType::Body:
      case AttrType::OptBody:
        if (!flag("a sub-graph's presence")) return Subgraph();
        return Subgraph(std::make_shared<const Graph>(graph(depth + 1)));
    }
    return {};
  }

  Value value(const Graph& g, std::string_view what) {
    Value v;
    v.node.index = u32(what);
    v.result = u32(what);
    if (v.node.index >= g.num_nodes() || v.result >= g.node(v.node).num_results())
      fail(concat_text(what, " ", v, " does not refer to an earlier value"));
    return v;
  }

  void node(Graph& g, int depth) {
    std::string op_name = string("an op name");
    const OpDef* def = nullptr;
    for (const OpDef* d : all_op_defs())
      if (d->name == op_name) def = d;
    if (!def) {
      std::vector<std::string> names;
      for (const OpDef* d : all_op_defs()) names.emplace_back(d->name);
      fail(concat_text("there is no op '", printable(op_name, 40), "'"), did_you_mean(op_name, names));
    }
    std::vector<Value> operands;
    for (std::size_t n = size(8, "an operand list"); operands.size() < n;) operands.push_back(value(g, "operand"));
    std::shared_ptr<void> op = make_default_op(def->kind);
    std::size_t num_attrs = size(5, "an attribute list");
    std::vector<bool> seen(def->attrs.size());
    for (std::size_t i = 0; i < num_attrs; ++i) {
      std::string name = string("an attribute name");
      std::size_t k = 0;
      while (k < def->attrs.size() && def->attrs[k].name != name) ++k;
      if (k == def->attrs.size()) fail(concat_text(op_name, " has no attribute '", printable(name, 40), "'"));
      if (seen[k]) fail(concat_text("attribute '", name, "' of ", op_name, " is given twice"));
      seen[k] = true;
      const AttrField& f = def->attrs[k];
      if (u8("an attribute type") != static_cast<std::uint8_t>(f.type))
        fail(concat_text("attribute '", name, "' of ", op_name, " has another type"));
      f.set(op.get(), attribute(f, depth));
    }
    std::vector<Shape> shapes;
    for (std::size_t n = size(8, "a list of result shapes"); shapes.size() < n;) shapes.push_back(shape());
    Origin origin;
    origin.label = string("a label");
    origin.loc.file = interned(string("a file name"));
    std::int64_t line = i64("a line number");
    if (line < 0 || line > 0x7fffffff) fail(concat_text("line number ", line, " is out of range"));
    origin.loc.line = static_cast<int>(line);
    origin.pass = string("a pass name");
    for (std::size_t n = size(4, "an origin list"); origin.from.size() < n;) origin.from.push_back(string("an origin"));

    OpBox box(def->kind, std::move(op));
    ShapeRefs operand_shapes;
    for (Value v : operands) operand_shapes.add(g.shape(v));
    Result<Shapes> inferred = at_position([&] { return infer_shapes(box, operand_shapes); });
    if (!inferred) fail(inferred.error().message, inferred.error().hint);
    if (*inferred != shapes) fail(concat_text("the stored shapes of ", op_name, " do not match its shape rule"));
    g.add_node(Node{std::move(box), std::move(operands), std::move(shapes), std::move(origin)});
  }

  // Returns true, and moves past the mark, when a list of symbol sources follows.
  bool sources_follow() {
    std::uint32_t mark = 0;
    if (bytes_.size() - at_ < sizeof mark) return false;
    std::memcpy(&mark, bytes_.data() + at_, sizeof mark);
    if (mark != kSourcesFollow) return false;
    at_ += sizeof mark;
    return true;
  }

  Graph graph(int depth) {
    if (depth > kMaxBodyDepth) fail(concat_text("sub-graphs are nested more than ", kMaxBodyDepth, " deep"));
    Graph g(string("the graph's name"));
    for (std::size_t i = 0, n = size(28, "the symbols"); i < n; ++i) {
      std::string name = string("a symbol name");
      SymbolInfo info;
      info.min = i64("a bound");
      info.max = i64("a bound");
      info.divisor = i64("a divisor");
      if (g.symbols().count(name)) fail(concat_text("symbol ", name, " is declared twice"));
      at_position([&] { g.symbol(name, info); });
    }
    std::set<std::string> leaf_names;
    for (std::size_t i = 0, n = size(20, "the nodes"); i < n; ++i) {
      node(g, depth);
      NodeId id{static_cast<std::uint32_t>(i)};
      OpKind kind = g.node(id).kind();
      if (is_named_leaf(kind) && !leaf_names.insert(g.leaf_name(id)).second)
        fail(concat_text("the name '", g.leaf_name(id), "' is used by two leaves"));
    }
    std::vector<Value> outputs;
    for (std::size_t n = size(8, "the outputs"); outputs.size() < n;) outputs.push_back(value(g, "output"));
    g.set_outputs(std::move(outputs));
    for (std::size_t i = 0, n = size(12, "the state updates"); i < n; ++i) {
      std::string name = string("a state name");
      Value v = value(g, "new value of a state");
      for (const auto& u : g.state_updates())
        if (u.name == name) fail(concat_text("state '", name, "' is set twice"));
      at_position([&] { g.set_state(name, v); });
    }
    if (depth > 0 || !sources_follow()) return g;
    for (std::size_t i = 0, n = size(12, "the symbols with a source"); i < n; ++i) {
      const std::string name = string("a symbol name");
      const Value v = value(g, "source of a symbol");
      if (!g.symbols().count(name)) fail(concat_text("symbol ", name, " has a source, but is not declared"));
      if (g.symbol_sources().count(name)) fail(concat_text("symbol ", name, " has two sources"));
      g.set_symbol_source(name, v);
    }
    return g;
  }

  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::size_t at_ = 0;
};

class VectorSink : public ByteSink {
 public:
  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), p, p + size);
  }
  std::vector<std::byte> bytes;
};

}  // namespace

void encode_graph(const Graph& g, EncodeParts parts, ByteSink& sink) { Encoder(sink, parts).graph(g); }

void encode_node(const Node& n, ByteSink& sink) { Encoder(sink, EncodeParts::Content).node_content(n); }

std::vector<std::byte> graph_bytes_header(std::span<const std::byte> body) {
  const Fingerprint sum = fingerprint_bytes(body.data(), body.size());
  const std::uint64_t numbers[] = {body.size(), sum.low, sum.high};
  VectorSink sink;
  sink.write(kMagic, sizeof kMagic);
  sink.write(&kGraphBytesVersion, sizeof kGraphBytesVersion);
  sink.write(numbers, sizeof numbers);
  check(sink.bytes.size() == kGraphBytesHeaderSize, "size of the header of binary graphs");
  return std::move(sink.bytes);
}

std::vector<std::byte> to_bytes(const Graph& g) {
  VectorSink sink;
  sink.bytes.resize(kGraphBytesHeaderSize);  // space for the header
  encode_graph(g, EncodeParts::All, sink);
  const std::vector<std::byte> header = graph_bytes_header(std::span(sink.bytes).subspan(kGraphBytesHeaderSize));
  std::copy(header.begin(), header.end(), sink.bytes.begin());
  return std::move(sink.bytes);
}

Graph from_bytes(std::span<const std::byte> bytes, std::string_view file) { return Decoder(bytes, file).whole(); }

}  // namespace rlx
