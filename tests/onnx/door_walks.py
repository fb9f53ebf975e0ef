"""Calls of a binding and a session in orders that are drawn: see `door_calls`."""

import random

import numpy as np
from door_calls import Call, outcome, pool


class Walk:
    """Calls of a binding and a session in an order that is drawn, with values that calls before them made and changed."""

    def __init__(self, world, seed):
        self.world, self.random = world, random.Random(seed)
        self.session = world.session()
        self.binding = self.session.io_binding()
        self.arrays = [np.full(shape, i + 1, "float32") for i, shape in enumerate([(2, 3), (2, 3), (1, 3), (3, 2)])]
        self.values = [world.ort.OrtValue.ortvalue_from_numpy(array) for array in self.arrays]
        self.has_run = False
        self.places = [np.zeros(shape, "float32") for shape in [(2, 3), (1, 3), ()]]

    def step(self):
        """One call, as text: what it is and what it gives."""
        name = self.random.choice([name for name in dir(self) if name.startswith("do_")])
        return name + " " + outcome(lambda world: getattr(self, name)(), self.world, [])

    def _input(self):
        return self.random.choice("xy")

    def _output(self):
        return self.random.choice("zzs")

    def do_bind_array(self):
        self.binding.bind_cpu_input(self._input(), self.random.choice(self.arrays))

    def do_bind_value(self):
        self.binding.bind_ortvalue_input(self._input(), self.random.choice(self.values))

    def do_bind_memory(self):
        array = self.random.choice(self.arrays)
        self.binding.bind_input(self._input(), "cpu", 0, np.float32, array.shape, array.ctypes.data)

    def do_ask(self):
        self.binding.bind_output(self._output())

    def do_ask_into_value(self):
        self.binding.bind_ortvalue_output(self._output(), self.random.choice(self.values))

    def do_ask_into_memory(self):
        place = self.random.choice(self.places)
        self.binding.bind_output(self._output(), "cpu", 0, np.float32, place.shape, place.ctypes.data)

    def do_write_to_array(self):
        array = self.random.choice(self.arrays)
        array[:] = self.random.randrange(9)

    def do_write_to_value(self):
        value = self.random.choice(self.values)
        value.update_inplace(np.full(value.shape(), self.random.randrange(9), "float32"))

    def do_run(self):
        self.has_run = False
        self.session.run_with_iobinding(self.binding)
        self.has_run = True
        return self.binding.copy_outputs_to_cpu()

    def do_run_again(self):
        return self.do_run()

    def do_run_values(self):
        x, y = self.random.choice(self.values), self.random.choice(self.values)
        return self.session.run_with_ort_values(None, {"x": x, "y": y})

    def do_run_arrays(self):
        x, y = self.random.choice(self.arrays), self.random.choice(self.arrays)
        return self.session.run(None, {"x": x, "y": y})

    def do_look(self):
        return [*self.arrays, *self.values, *self.places]

    def do_look_at_outputs(self):
        # Values that no run has made end the process there.
        return self.binding.get_outputs() if self.has_run else None

    def do_clear_inputs(self):
        if self.random.random() < 0.3:
            self.binding.clear_binding_inputs()

    def do_clear_outputs(self):
        if self.random.random() < 0.3:
            self.binding.clear_binding_outputs()


def walks():
    """The same walks for both packages."""

    def walk(world, seed):
        walk = Walk(world, seed)
        world.kept.append(walk)
        steps = []
        for _ in range(25):
            steps.append(walk.step())
            # A run that fails may have written some of its outputs.
            if steps[-1].startswith("do_run") and " raises " in steps[-1]:
                break
        return steps

    for first in range(0, 240, 60):
        yield Call("walk", walk, seed=pool(*range(first, first + 60)))
