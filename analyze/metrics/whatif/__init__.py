"""What-ifs: the recorded run replayed without one of its costs. One file per kind of cost, and one that replays."""
