// src/py/import/rung.hpp: what came of one way to import an object.
#pragma once

namespace tenon::py {

/// The outcome of one rung.
enum class rung_result {
    taken,    ///< the tensor is in `acquired`
    absent,   ///< the object does not speak this protocol
    refused,  ///< it does, but what it said is not acceptable; the error is filled in
    raised,   ///< a Python exception is set, the producer's own: stop
};

}  // namespace tenon::py
