// Filters of sequences. Filters that are generators in jinja2 are lazy here too.
#include <algorithm>
#include <functional>
#include <set>

#include "rlx/error.h"
#include "rlx/text/jinja/render.h"
#include "rlx/text/jinja/unicode.h"

namespace rlx::jinja {

AttributePath::AttributePath(Heap& heap, const Value& attribute, Value fallback) : fallback_(std::move(fallback)) {
  if (attribute.missing() || attribute.is(Kind::None)) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.text();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    bool overflow = false;
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    const std::optional<std::int64_t> index = digits ? parse_int(part, 10, overflow) : std::nullopt;
    parts_.push_back(index && !overflow ? Value::integer(*index) : heap.string(std::string(part)));
    if (dot == std::string_view::npos) return;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributePath::operator()(Renderer& r, Value item) const {
  for (const Value& part : parts_) {
    item = get_item(r, item, part);
    if (item.is(Kind::Undefined) && !fallback_.missing() && !fallback_.is(Kind::None)) item = fallback_;
  }
  return item;
}

Value ignore_case(Heap& heap, const Value& v) { return v.is_string() ? heap.string(lower(v.text()), is_markup(v)) : v; }

namespace {

// Sorts a short list with the same comparisons as Python's sort, so that an error names the same pair of items. Python
// first finds the sorted run at the start, then inserts each further item by binary search.
template <class Less>
void sort_short(std::vector<std::size_t>& order, const Less& before) {
  std::size_t run = std::min<std::size_t>(order.size(), 1);
  bool descending = false;
  for (; run < order.size(); ++run) {
    const bool falls = before(order[run], order[run - 1]);
    if (run == 1) descending = falls;
    if (falls != descending) break;
  }
  if (descending) std::reverse(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(run));
  for (; run < order.size(); ++run) {
    std::size_t low = 0, high = run;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (before(order[run], order[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    const auto at = order.begin() + static_cast<std::ptrdiff_t>(run);
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(low), at, at + 1);
  }
}

}  // namespace

std::vector<Value> sorted_by(Heap& heap, std::vector<Value> items, std::vector<Value> keys, bool reverse) {
  constexpr std::size_t kShort = 64;
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto before = [&](std::size_t a, std::size_t b) { return less(heap, keys[a], keys[b]); };
  if (reverse) std::reverse(order.begin(), order.end());
  if (order.size() < kShort)
    sort_short(order, before);
  else
    std::stable_sort(order.begin(), order.end(), before);
  if (reverse) std::reverse(order.begin(), order.end());
  std::vector<Value> out;
  out.reserve(items.size());
  for (const std::size_t i : order) out.push_back(items[i]);
  return out;
}

namespace {

std::int32_t depth_over(const Value& v) { return (v.has_object() ? v.object()->depth : 0) + 1; }

// Items of `source` that `keep` accepts, possibly changed by it.
struct Selected final : IteratorObject {
  using Keep = std::function<bool(Value&)>;
  Selected(Value over, std::function<Keep()> first) : source(std::move(over)), prepare(std::move(first)) {}
  bool next(Heap& heap, Value& out) override {
    if (done) return false;
    if (!cursor) {
      keep = prepare();
      cursor.emplace(heap, source);
    }
    for (Value item; cursor->next(item);) {
      if (!keep(item)) continue;
      out = std::move(item);
      return true;
    }
    done = true;
    return false;
  }
  Value source;
  std::function<Keep()> prepare;
  Keep keep;
  std::optional<Cursor> cursor;
  bool done = false;
};

Value selected(Renderer& r, const Value& source, std::function<Selected::Keep()> prepare) {
  return r.heap().adopt(Kind::Iterator, new Selected(source, std::move(prepare)), sizeof(Selected), depth_over(source));
}

// A list that is computed when the first item is read.
struct Deferred final : IteratorObject {
  explicit Deferred(std::function<std::vector<Value>()> all) : make(std::move(all)) {}
  bool next(Heap&, Value& out) override {
    if (make) {
      items = make();
      make = nullptr;
    }
    if (at >= items.size()) return false;
    out = items[at++];
    return true;
  }
  std::function<std::vector<Value>()> make;
  std::vector<Value> items;
  std::size_t at = 0;
};

Value deferred(Renderer& r, const Value& source, std::string_view type, std::function<std::vector<Value>()> make) {
  auto object = std::make_unique<Deferred>(std::move(make));
  object->type = type;
  return r.heap().adopt(Kind::Iterator, object.release(), sizeof(Deferred), depth_over(source));
}

bool reversible(const Value& v) { return v.is(Kind::Undefined) || (length_of(v) && !v.is(Kind::Loop)); }

Value do_batch(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_batch", {"linecount", "fill_with"}, 1);
  Heap& heap = r.heap();
  const Value count = p[0], fill = p[1];
  return deferred(r, v, "generator", [&heap, v, count, fill] {
    std::vector<Value> out, row;
    Cursor cursor(heap, v);
    for (Value item; cursor.next(item);) {
      if (equal(heap, Value::integer(static_cast<std::int64_t>(row.size())), count)) {
        out.push_back(heap.list(std::move(row)));
        row.clear();
      }
      row.push_back(std::move(item));
    }
    if (row.empty()) return out;
    if (!fill.missing() && !fill.is(Kind::None)) {
      const std::int64_t size = static_cast<std::int64_t>(row.size());
      if (less(heap, Value::integer(size), count)) {
        for (std::int64_t left = require_integer(count) - size; left > 0; --left) {
          heap.step();
          row.push_back(fill);
        }
      }
    }
    out.push_back(heap.list(std::move(row)));
    return out;
  });
}

Value do_slice(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "sync_do_slice", {"slices", "fill_with"}, 1);
  Heap& heap = r.heap();
  const Value count = p[0], fill = p[1];
  return deferred(r, v, "generator", [&heap, v, count, fill] {
    const std::vector<Value> items = collect(heap, v);
    const std::int64_t length = static_cast<std::int64_t>(items.size()), slices = require_integer(count);
    if (slices == 0) raise("ZeroDivisionError", "integer division or modulo by zero");
    std::vector<Value> out;
    if (slices < 0) return out;
    const std::int64_t each = length / slices, extra = length % slices;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < slices; ++i) {
      heap.step();
      const std::int64_t size = each + (i < extra ? 1 : 0);
      std::vector<Value> row(items.begin() + at, items.begin() + at + size);
      at += size;
      if (!fill.missing() && !fill.is(Kind::None) && i >= extra) row.push_back(fill);
      out.push_back(heap.list(std::move(row)));
    }
    return out;
  });
}

Value do_dictsort(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_dictsort", {"case_sensitive", "by", "reverse"});
  Heap& heap = r.heap();
  const std::string by = p[1].missing() ? "key" : to_text(heap, p[1]);
  if (by != "key" && by != "value") raise(kFilterError, "You can only sort by either \"key\" or \"value\"");
  if (v.is(Kind::Undefined)) raise_undefined(v);
  if (!v.is(Kind::Dict)) raise("AttributeError", concat_text("'", type_name(v), "' object has no attribute 'items'"));
  std::vector<Value> items, keys;
  for (const auto& [key, value] : v.get<DictObject>().entries) {
    items.push_back(heap.pair(key, value));
    const Value& sort_key = by == "key" ? key : value;
    keys.push_back(p.flag(0) ? sort_key : ignore_case(heap, sort_key));
  }
  return heap.list(sorted_by(heap, std::move(items), std::move(keys), p.flag(2)));
}

Value do_first(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "sync_do_first", {}, 0, 2);
  Value out;
  Cursor cursor(r.heap(), v);
  return cursor.next(out) ? out : r.heap().undefined_hint("No first item, sequence was empty.");
}

Value do_last(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_last", {}, 0, 2);
  if (!reversible(v)) raise(kTypeError, concat_text("'", type_name(v), "' object is not reversible"));
  std::vector<Value> items = collect(r.heap(), v);
  return items.empty() ? r.heap().undefined_hint("No last item, sequence was empty.") : items.back();
}

Value do_groupby(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "sync_do_groupby", {"attribute", "default", "case_sensitive"}, 1, 2);
  Heap& heap = r.heap();
  const AttributePath path(heap, p[0], p[1]);
  const auto key_of = [&](const Value& item) {
    Value key = path(r, item);
    return p.flag(2) ? key : ignore_case(heap, key);
  };
  std::vector<Value> items = collect(heap, v), keys;
  for (const Value& item : items) keys.push_back(key_of(item));
  items = sorted_by(heap, std::move(items), std::move(keys), false);
  std::vector<Value> out;
  for (std::size_t i = 0; i < items.size();) {
    Value key = key_of(items[i]);
    std::vector<Value> group;
    for (; i < items.size() && equal(heap, key_of(items[i]), key); ++i) group.push_back(items[i]);
    if (group.empty()) group.push_back(items[i++]);  // a key that is not equal to itself (NaN)
    if (!p.flag(2)) key = path(r, group[0]);
    out.push_back(heap.pair(key, heap.list(std::move(group))));
    out.back().get<ListObject>().group = true;
  }
  return heap.list(std::move(out));
}

Value do_items(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_items", {});
  Heap& heap = r.heap();
  return deferred(r, v, "generator", [&heap, v]() -> std::vector<Value> {
    if (v.is(Kind::Undefined)) return {};
    if (!v.is(Kind::Dict)) raise(kTypeError, "Can only get item pairs from a mapping.");
    return collect(heap, heap.view(v, ViewOf::Items));
  });
}

Value do_join(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "sync_do_join", {"d", "attribute"}, 0, 2);
  Heap& heap = r.heap();
  const std::string separator = p[0].missing() ? std::string() : to_text(heap, p[0]);
  const AttributePath path(heap, p[1]);
  std::string out;
  Cursor cursor(heap, v);
  bool first = true;
  for (Value item; cursor.next(item); first = false) {
    if (!first) out += separator;
    out += to_text(heap, path(r, std::move(item)));
    Budget::require_string(out.size());
  }
  return heap.string(std::move(out));
}

Value do_list(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "sync_do_list", {});
  return r.heap().list(collect(r.heap(), v));
}

Value do_map(Renderer& r, const Value& v, Arguments& args) {
  Heap& heap = r.heap();
  if (!truth(v)) return deferred(r, v, "generator", [] { return std::vector<Value>(); });
  return selected(r, v, [&r, &heap, given = args]() -> Selected::Keep {
    Arguments rest = given;
    if (rest.positional.empty()) {
      Value attribute = rest.take("attribute");
      if (attribute.missing()) raise(kFilterError, "map requires a filter argument");
      const Value fallback = rest.take("default");
      if (!rest.named.empty())
        raise(kFilterError, concat_text("Unexpected keyword argument ", repr_of_string(rest.named[0].first)));
      return [&r, path = AttributePath(heap, attribute, fallback)](Value& item) {
        item = path(r, std::move(item));
        return true;
      };
    }
    const Value name = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
    return [&r, &heap, name, rest](Value& item) {
      if (!name.is_string() || !is_filter(name.text())) {
        const bool unsupported = name.is_string() && is_unsupported_filter(name.text());
        if (unsupported) raise(kUnsupported, concat_text("the filter '", name.text(), "' is not supported"));
        raise(kRuntimeError, concat_text("No filter named ", to_repr(heap, name), "."));
      }
      Arguments copy = rest;
      item = call_filter(r, name.text(), item, copy);
      return true;
    };
  });
}

// The filters select, reject, selectattr, rejectattr.
template <bool kWanted, bool kOfAttribute>
Value do_select(Renderer& r, const Value& v, Arguments& args) {
  Heap& heap = r.heap();
  if (!truth(v)) return deferred(r, v, "generator", [] { return std::vector<Value>(); });
  return selected(r, v, [&r, &heap, given = args]() -> Selected::Keep {
    Arguments rest = given;
    Value attribute;
    if (kOfAttribute) {
      if (rest.positional.empty()) raise(kFilterError, "Missing parameter for attribute name");
      attribute = rest.positional[0];
      rest.positional.erase(rest.positional.begin());
    }
    const AttributePath path(heap, attribute);
    if (rest.positional.empty())
      return [&r, path](Value& item) { return truth(kOfAttribute ? path(r, item) : item) == kWanted; };
    const Value name = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
    return [&r, &heap, path, name, rest](Value& item) {
      const Value subject = kOfAttribute ? path(r, item) : item;
      if (!name.is_string() || !is_test(name.text()))
        raise(kRuntimeError, concat_text("No test named ", to_repr(heap, name), "."));
      Arguments copy = rest;
      return call_test(r, name.text(), subject, copy) == kWanted;
    };
  });
}

template <bool kMax>
Value do_extreme(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, kMax ? "do_max" : "do_min", {"case_sensitive", "attribute"}, 0, 2);
  Heap& heap = r.heap();
  const AttributePath path(heap, p[1]);
  Cursor cursor(heap, v);
  Value best, best_key;
  for (Value item; cursor.next(item);) {
    Value key = path(r, item);
    if (!p.flag(0)) key = ignore_case(heap, key);
    if (!best.missing() && !compare(heap, kMax ? ">" : "<", key, best_key)) continue;
    best = item;
    best_key = key;
  }
  return best.missing() ? heap.undefined_hint("No aggregated item, sequence was empty.") : best;
}

Value do_reverse(Renderer& r, const Value& v, Arguments& args) {
  const Parameters none(args, "do_reverse", {});
  Heap& heap = r.heap();
  if (v.is_string()) return slice(heap, v, Value::none(), Value::none(), Value::integer(-1));
  if (!iterable(v)) raise(kFilterError, "argument must be iterable");
  std::vector<Value> items = collect(heap, v);
  std::reverse(items.begin(), items.end());
  if (!reversible(v)) return heap.list(std::move(items));
  const std::string_view type = v.is(Kind::List)    ? "list_reverseiterator"
                                : v.is(Kind::Dict)  ? "dict_reversekeyiterator"
                                : v.is(Kind::Range) ? "range_iterator"
                                                    : "reversed";
  return deferred(r, v, type, [items] { return items; });
}

Value do_sort(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "do_sort", {"reverse", "case_sensitive", "attribute"}, 0, 2);
  Heap& heap = r.heap();
  std::vector<AttributePath> paths;
  if (p[2].is_string()) {
    std::string_view rest = p[2].text();
    while (true) {
      const std::size_t comma = rest.find(',');
      paths.emplace_back(heap, heap.string(std::string(rest.substr(0, comma))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.emplace_back(heap, p[2]);
  }
  std::vector<Value> items = collect(heap, v), keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const AttributePath& path : paths) {
      Value key = path(r, item);
      parts.push_back(p.flag(1) ? key : ignore_case(heap, key));
    }
    keys.push_back(heap.list(std::move(parts)));
  }
  return heap.list(sorted_by(heap, std::move(items), std::move(keys), p.flag(0)));
}

Value do_sum(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "sync_do_sum", {"attribute", "start"}, 0, 2);
  Heap& heap = r.heap();
  Value sum = p[1].missing() ? Value::integer(0) : p[1];
  Cursor cursor(heap, v);
  if (sum.is_string()) raise(kTypeError, "sum() can't sum strings [use ''.join(seq) instead]");
  const AttributePath path(heap, p[0]);
  for (Value item; cursor.next(item);) sum = arithmetic(heap, Expr::Type::Add, sum, path(r, std::move(item)));
  return sum;
}

Value do_unique(Renderer& r, const Value& v, Arguments& args) {
  const Parameters p(args, "sync_do_unique", {"case_sensitive", "attribute"}, 0, 2);
  Heap& heap = r.heap();
  const bool sensitive = p.flag(0);
  const Value attribute = p[1];
  struct Before {
    bool operator()(const Value& a, const Value& b) const { return compare_keys(a, b) < 0; }
  };
  return selected(r, v, [&r, &heap, sensitive, attribute]() -> Selected::Keep {
    auto seen = std::make_shared<std::set<Value, Before>>();
    return [&r, &heap, seen, sensitive, path = AttributePath(heap, attribute)](Value& item) {
      Value key = path(r, item);
      if (!sensitive) key = ignore_case(heap, key);
      heap.use_as_key(key);
      return seen->insert(std::move(key)).second;
    };
  });
}

constexpr NamedFilter kSequenceFilters[] = {
    {"batch", do_batch},
    {"dictsort", do_dictsort},
    {"first", do_first},
    {"groupby", do_groupby},
    {"items", do_items},
    {"join", do_join},
    {"last", do_last},
    {"list", do_list},
    {"map", do_map},
    {"max", do_extreme<true>},
    {"min", do_extreme<false>},
    {"reject", do_select<false, false>},
    {"rejectattr", do_select<false, true>},
    {"reverse", do_reverse},
    {"select", do_select<true, false>},
    {"selectattr", do_select<true, true>},
    {"slice", do_slice},
    {"sort", do_sort},
    {"sum", do_sum},
    {"unique", do_unique},
};

}  // namespace

const NamedFilter* find_sequence_filter(std::string_view name) {
  for (const NamedFilter& f : kSequenceFilters)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace rlx::jinja
