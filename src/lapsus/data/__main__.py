from lapsus.data import make_observer

make_observer()
