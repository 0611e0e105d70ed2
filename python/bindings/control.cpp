// Branches, loops, checkpoints and functions with custom derivatives. Python functions build their bodies.
#include <array>

#include "python/bindings/tracing.h"
#include "rlx/ir/build/body_scope.h"
#include "rlx/ir/builder.h"

namespace rlx::python {
namespace {

Graph& current() {
  Graph* g = traced_graph();
  if (!g) raise(ErrorCode::InvalidArgument, "control flow needs a function under trace", "call it inside rlx.jit");
  return *g;
}

ExprList values_in(Graph& g, nb::handle list, SourceLoc loc) {
  ExprList out;
  for (nb::handle h : list) out.push_back(operand_from(g, h, loc));
  return out;
}

// Calls a Python function on values, while the graph of its body is the current one.
template <class F>
auto drawn(Graph& body, F&& f, bool closed = false) {
  const Frame frame(body, closed);
  return f();
}

BodyFn body_of(nb::handle fn, SourceLoc loc, bool closed = false) {
  return [fn, loc, closed](Graph& body, const ExprList& operands) {
    return drawn(
        body, [&] { return values_in(body, fn(value_list(operands, loc)), loc); }, closed);
  };
}

struct Rules {
  nb::handle body, forward, backward, jvp;
};

ExprList slice(const ExprList& xs, std::size_t from, std::size_t to) {
  ExprList out;
  for (std::size_t i = from; i < to; ++i) out.push_back(xs[i]);
  return out;
}
void append(ExprList& to, const ExprList& more) {
  for (const Expr& e : more) to.push_back(e);
}
std::size_t inexact_among(const ExprList& xs) {
  std::size_t count = 0;
  for (const Expr& e : xs) count += is_inexact(e.dtype()) ? 1 : 0;
  return count;
}

// The values of the graph that a function with custom derivatives and its rules use without being given them. They are
// the last operands and the last residuals; they have no derivative.
struct ClosedOver {
  ExprList values{};
  std::size_t results = 0, residuals = 0;

  // The operands with these values, which mark(value, name) gives a derivative that is an error.
  ExprList operands(const ExprList& own, const std::string& name, nb::handle mark, SourceLoc loc) const {
    ExprList out = own;
    if (values.empty()) return out;
    for (const Expr& e : values) {
      const nb::list one = value_list(std::array{e}, loc);
      out.push_back(is_inexact(e.dtype()) ? operand_from(current(), mark(one[0], name), loc) : e);
    }
    return out;
  }

  // Calls a rule on its values; `inputs` stand for the values around it. New ones are noted.
  ExprList call(Graph& body, nb::handle rule, const ExprList& xs, const ExprList& inputs, SourceLoc loc) {
    for (std::size_t k = 0; k < inputs.size(); ++k) BodyScope::stand_for(body, values[k], inputs[k]);
    ExprList out = drawn(
        body, [&] { return values_in(body, rule(value_list(xs, loc)), loc); }, true);
    // Derivative rules see the operands alone, so each body holds its own constants.
    for (const Expr& e : BodyScope::captured_by(body)) values.push_back(e);
    return out;
  }

  CustomFn of(const Rules& rules, std::size_t own, const std::string& name, SourceLoc loc) {
    CustomFn fn;
    const std::size_t count = values.size();
    fn.body = [=, this](Graph& body, const ExprList& xs) {
      ExprList out = call(body, rules.body, slice(xs, 0, own), slice(xs, own, xs.size()), loc);
      results = out.size();
      return out;
    };
    if (!rules.forward.is_none())
      fn.forward = [=, this](Graph& body, const ExprList& xs) {
        const ExprList inputs = slice(xs, own, xs.size());
        ExprList out = call(body, rules.forward, slice(xs, 0, own), inputs, loc);
        residuals = out.size() - results;
        append(out, inputs);
        return out;
      };
    if (!rules.backward.is_none())
      fn.backward = [=, this](Graph& body, const ExprList& xs) {
        const ExprList inputs = slice(xs, residuals, residuals + count);
        ExprList given = slice(xs, 0, residuals);
        append(given, slice(xs, residuals + count, xs.size()));
        ExprList out = call(body, rules.backward, given, inputs, loc);
        for (const Expr& e : inputs)
          if (is_inexact(e.dtype()))
            out.push_back(body.expand(body.constant(Tensor::scalar(e.dtype(), 0.0)), e.shape().dims()));
        return out;
      };
    if (!rules.jvp.is_none())
      fn.jvp = [=, this](Graph& body, const ExprList& xs) {
        ExprList given = slice(xs, 0, own);
        append(given, slice(xs, own + count, own + count + inexact_among(given)));
        return call(body, rules.jvp, given, slice(xs, own, own + count), loc);
      };
    fn.name = name;
    return fn;
  }
};

nb::tuple results(const ExprList& values, SourceLoc loc) { return nb::tuple(value_list(values, loc)); }

}  // namespace

void bind_control(nb::module_& m) {
  m.def("cond", [](nb::handle pred, nb::handle operands, nb::handle then, nb::handle otherwise) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    const ExprList own = values_in(g, operands, loc);
    return results(
        g.cond(Operand(operand_from(g, pred, loc), loc), own, body_of(then, loc), body_of(otherwise, loc), loc), loc);
  });
  m.def(
      "scan",
      [](nb::handle init, nb::handle xs, nb::handle fn, nb::handle length, bool reverse, bool checkpoint,
         const std::string& name) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        ScanOptions options;
        if (!length.is_none()) options.length = dim_from(length, "length");
        options.reverse = reverse;
        options.checkpoint = checkpoint;
        options.name = name;
        const LoopResult r = g.scan(
            values_in(g, init, loc), values_in(g, xs, loc),
            [&](Graph& body, const ExprList& carries, const ExprList& rows) {
              return drawn(body, [&] {
                const nb::object step = fn(value_list(carries, loc), value_list(rows, loc));
                return LoopStep(values_in(body, step[nb::int_(0)], loc), values_in(body, step[nb::int_(1)], loc));
              });
            },
            options, loc);
        return nb::make_tuple(results(r.carries, loc), results(r.ys, loc));
      },
      nb::arg("init"), nb::arg("xs"), nb::arg("fn"), nb::arg("length").none(), nb::arg("reverse"),
      nb::arg("checkpoint"), nb::arg("name"));
  m.def(
      "while_loop",
      [](nb::handle init, nb::handle condition, nb::handle fn, std::optional<std::int64_t> max_iterations) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        WhileOptions options;
        options.max_iterations = max_iterations;
        const LoopResult r = g.while_loop(
            values_in(g, init, loc),
            [&](Graph& body, const ExprList& carries) {
              return drawn(body, [&] { return operand_from(body, condition(value_list(carries, loc)), loc); });
            },
            [&](Graph& body, const ExprList& carries) {
              return drawn(body, [&] { return LoopStep(values_in(body, fn(value_list(carries, loc)), loc)); });
            },
            options, loc);
        return results(r.carries, loc);
      },
      nb::arg("init"), nb::arg("condition"), nb::arg("fn"), nb::arg("max_iterations").none() = nb::none());
  m.def("call", [](nb::handle operands, nb::handle fn, const std::string& name) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    return results(g.call(name, values_in(g, operands, loc), body_of(fn, loc), loc), loc);
  });
  m.def("checkpoint", [](nb::handle operands, nb::handle fn, bool keep_dots) {
    const SourceLoc loc = user_line();
    Graph& g = current();
    return results(g.checkpoint(values_in(g, operands, loc), body_of(fn, loc),
                                keep_dots ? CallSave::Dots : CallSave::Nothing, loc),
                   loc);
  });
  m.def(
      "custom_fn",
      [](nb::handle operands, nb::handle body, nb::handle forward, nb::handle backward, nb::handle jvp,
         const std::string& name, nb::handle mark) {
        const SourceLoc loc = user_line();
        Graph& g = current();
        const ExprList own = values_in(g, operands, loc);
        // Values around the function that it uses become operands too. Which ones, each try finds out for one body.
        ClosedOver around;
        while (true) {
          const std::size_t before = around.values.size();
          try {
            return results(g.custom_fn(around.operands(own, name, mark, loc),
                                       around.of({body, forward, backward, jvp}, own.size(), name, loc), loc),
                           loc);
          } catch (const Error&) {
            if (around.values.size() == before) throw;
          }
        }
      },
      nb::arg("operands"), nb::arg("body"), nb::arg("forward").none(), nb::arg("backward").none(),
      nb::arg("jvp").none(), nb::arg("name"), nb::arg("mark"));
}

}  // namespace rlx::python
