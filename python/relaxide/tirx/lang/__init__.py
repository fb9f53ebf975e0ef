"""The names of :mod:`relaxide.tirx.cuda.lang` where TVM has them as well."""
