"""Constructors of Relay's nodes, by name."""

from ..ir._api import Api

ir, vm = Api("relay.ir"), Api("relay.vm")
