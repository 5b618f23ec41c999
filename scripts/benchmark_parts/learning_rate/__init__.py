"""The parts of the learning-rate benchmark: tasks on real data, arms that train them, and what is made of the runs."""
