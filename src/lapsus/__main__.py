from lapsus.cli import main

main()
