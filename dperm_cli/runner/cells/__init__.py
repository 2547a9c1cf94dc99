"""One cell: its problem, optimum, plan, release and rows."""
