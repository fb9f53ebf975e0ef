//! The derive macros of `relaxide-ffi`.
